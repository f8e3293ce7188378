/* SPDX-License-Identifier: Apache-2.0
 * The score port: what is known of whoever asks for a new place, as a lane. Its one adapter counts
 * in this process's memory; a scorer of its own would stand behind these functions. */
#ifndef EDGE_SCORE_H
#define EDGE_SCORE_H

#include "services/edge/credentials.h"

/* Reads the settings into edge->lanes. Says on stderr what is wrong. 0 or TG_ERR_SETTING. */
TG_MUST_CHECK int edge_lanes_read(struct edge *edge);

/* Counts one new place of this caller and says which lane it gets. */
enum tg_lane edge_score_place(const struct edge_request *request, const struct edge_caller *caller);

/* The operator has named this caller's account: its places are live, whatever they were sealed as.
 */
bool edge_lane_pardoned(const struct edge_request *request, const struct edge_caller *caller);

/* ,"lanes":... of the policy document. */
void edge_write_lanes(const struct edge *edge, struct edge_writer *writer);

#endif
