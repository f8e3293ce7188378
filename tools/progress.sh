# SPDX-License-Identifier: Apache-2.0
# Long work shows where it is; sourced.

# told_on_terminal WHAT PATTERN: passes its input on; on a terminal the last match stands beside WHAT.
told_on_terminal() {
    local text
    while IFS= read -r text; do
        printf '%s\n' "$text"
        if [ -t 2 ] && [[ $text =~ $2 ]]; then printf '\r\033[K%s %.60s' "$1" "${BASH_REMATCH[1]}" >&2; fi
    done
    if [ -t 2 ]; then printf '\r\033[K%s\n' "$1" >&2; fi
}
