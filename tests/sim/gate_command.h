/* SPDX-License-Identifier: Apache-2.0
 * redis.call of the simulated gate: Redis's commands as the scripts use them. */
#ifndef SIM_GATE_COMMAND_H
#define SIM_GATE_COMMAND_H

#include "tests/sim/gate_script.h"

#include <lua.h>

/* The run that redis.call serves. */
struct gate_run {
    const struct gate_machine *machine;
    bool allow_oom, wrote;
};
extern struct gate_run gate_run;

int gate_command_call(lua_State *lua);
/* The addresses of Lua's strings are only known to one state. */
void gate_command_forget(void);

#endif
