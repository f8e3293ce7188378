/* SPDX-License-Identifier: Apache-2.0
 * Ends what config_members.h or config_rows.h began. */
#undef TG_TEXT
#undef TG_FILE
#undef TG_INTEGER
#undef TG_DURATION
#undef TG_SETTINGS_OF
