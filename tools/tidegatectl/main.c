/* SPDX-License-Identifier: Apache-2.0
 * tidegatectl: the operator's tool. */
#include "tools/tidegatectl/ctl.h"

int main(int argc, char **argv)
{
    return ctl_main(argc, argv);
}
