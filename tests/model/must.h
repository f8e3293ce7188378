/* SPDX-License-Identifier: Apache-2.0
 * A named property: the name appears in Spin's report when the condition does not hold. `name` is a
 * hidden byte that stays 0, declared with PROPERTY; hidden variables are not part of the state. */
#define PROPERTY(name) hidden byte name
#define MUST(name, condition) assert(name || (condition))
