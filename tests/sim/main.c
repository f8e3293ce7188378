/* SPDX-License-Identifier: Apache-2.0
 * tidegate-sim: schedules by seed, in several processes; what failed is run again alone, with the
 * fewest faults that still make it fail, and told. */
#include "tests/sim/sim.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = 64, SEEDS_KNOWN_MAX = 256, EVENTS_TOLD = 200, PROGRESS_S = 20 };

static const char *const fault_names[FAULT_COUNT] = {
#define SIM_FAULT(id, name, percent, what) name,
#include "tests/sim/faults.def"
#undef SIM_FAULT
};
struct mutant_row {
    const char *name;
    uint64_t seeds;
    const char *what;
    struct gate_mutation script;
};
static const struct mutant_row mutants[MUTANT_COUNT] = {
    {"none", 0, "", {NULL, NULL, NULL}},
#define SIM_MUTANT(id, name, seeds, what) {name, seeds, what, {NULL, NULL, NULL}},
#define SIM_SCRIPT_MUTANT(id, name, seeds, script, from, to)                                       \
    {name, seeds, "in the script", {script, from, to}},
#include "tests/sim/mutants.def"
#undef SIM_MUTANT
#undef SIM_SCRIPT_MUTANT
};

/* What a child tells its parent. */
struct job {
    volatile uint64_t seed; /* in work */
    volatile uint64_t done;
    volatile bool failed;
    struct sim_totals totals;
};

struct options {
    uint64_t from, count, replay;
    bool replays, all_mutants;
    uint32_t jobs, mask, notes;
    int seconds;
    enum sim_mutant mutant;
    const char *seeds_file;
};

static double now_s(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void set_mutant(enum sim_mutant mutant)
{
    const struct mutant_row *row = &mutants[mutant];
    sim.mutant = mutant;
    ledger_mutation =
        (struct ledger_mutation){.no_tombstone = mutant == MUTANT_NO_TOMBSTONE,
                                 .no_fence = mutant == MUTANT_NO_FENCE,
                                 .no_tombstone_fence = mutant == MUTANT_NO_TOMBSTONE_FENCE,
                                 .expire_early = mutant == MUTANT_EXPIRE_EARLY,
                                 .confirm_late = mutant == MUTANT_CONFIRM_LATE,
                                 .resume_blind = mutant == MUTANT_RESUME_BLIND,
                                 .load_live_only = mutant == MUTANT_LOAD_LIVE_ONLY};
    gate_script_open(&row->script, row->script.script != NULL);
}

/* ---- running ---- */

/* A lower seed has failed already: what comes later would not be told. */
static bool is_idle(const struct job *jobs, const struct options *options, uint64_t seed)
{
    for (uint32_t i = 0; i < options->jobs; i++) {
        if (jobs[i].failed && jobs[i].seed < seed) {
            return true;
        }
    }
    return false;
}

static void run_job(struct job *jobs, const struct options *options, uint32_t number)
{
    struct job *job = &jobs[number];
    const double until = options->seconds > 0 ? now_s() + options->seconds : 0;
    set_mutant(options->mutant);
    for (uint64_t i = number; i < options->count; i += options->jobs) {
        if (is_idle(jobs, options, options->from + i)) {
            break;
        }
        job->seed = options->from + i;
        schedule_run(job->seed, options->mask, false);
        job->done = sim_totals.schedules;
        if (sim.failed) {
            job->failed = true;
            break;
        }
        if (until > 0 && sim_totals.schedules % 32 == 0 && now_s() > until) {
            break;
        }
    }
    job->totals = sim_totals;
    job->seed = job->failed ? job->seed : UINT64_MAX;
}

/* Until all have ended; says now and then how far they are. SIGCHLD is blocked. */
static void wait_for(const struct job *jobs, const struct options *options, const sigset_t *ended)
{
    const struct timespec pause = {.tv_sec = PROGRESS_S};
    for (uint32_t left = options->jobs; left > 0;) {
        const bool told = sigtimedwait(ended, NULL, &pause) > 0;
        while (left > 0 && waitpid(-1, NULL, WNOHANG) > 0) {
            left--;
        }
        uint64_t done = 0;
        for (uint32_t i = 0; i < options->jobs; i++) {
            done += jobs[i].done;
        }
        if (!told) {
            (void)fprintf(stderr, "%" PRIu64 " schedules\n", done);
        }
    }
}

static struct job *run_jobs(const struct options *options)
{
    struct job *jobs = mmap(NULL, JOBS_MAX * sizeof *jobs, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (jobs == MAP_FAILED) {
        exit(71);
    }
    sigset_t ended;
    (void)sigemptyset(&ended);
    (void)sigaddset(&ended, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &ended, NULL);
    for (uint32_t i = 0; i < options->jobs; i++) {
        const pid_t child = fork();
        if (child == 0) {
            run_job(jobs, options, i);
            _exit(0);
        }
        if (child < 0) {
            exit(71);
        }
    }
    wait_for(jobs, options, &ended);
    return jobs;
}

static void add_totals(struct sim_totals *sum, const struct sim_totals *one)
{
    sum->schedules += one->schedules;
    sum->events += one->events;
    sum->rounds += one->rounds;
    sum->holds += one->holds;
    sum->sold += one->sold;
    if (one->events_least > 0 &&
        (sum->events_least == 0 || one->events_least < sum->events_least)) {
        sum->events_least = one->events_least;
    }
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        sum->faults[fault] += one->faults[fault];
    }
}

/* ---- telling ---- */

static const char *commit(void)
{
    static char text[64] = "unknown";
    FILE *pipe = popen("git rev-parse --short=12 HEAD 2>/dev/null", "r");
    if (pipe != NULL) {
        if (fgets(text, sizeof text, pipe) != NULL) {
            text[strcspn(text, "\n")] = '\0';
        }
        (void)pclose(pipe);
    }
    return text;
}

/* Does the schedule still fail? In a process of its own: it may end in an assertion. */
static bool fails(const struct options *options, uint64_t seed, uint32_t mask)
{
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        set_mutant(options->mutant);
        schedule_run(seed, mask, false);
        _exit(sim.failed);
    }
    return child > 0 && waitpid(child, &status, 0) == child &&
           !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static uint32_t fewest_faults(const struct options *options, uint64_t seed)
{
    uint32_t mask = options->mask;
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        const uint32_t fewer = mask & ~(UINT32_C(1) << fault);
        if (fails(options, seed, fewer)) {
            mask = fewer;
        }
    }
    return mask;
}

static void print_faults(uint32_t faults)
{
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        if (faults >> fault & 1u) {
            (void)printf(" %s", fault_names[fault]);
        }
    }
    (void)printf("%s\n", faults == 0 ? " none" : "");
}

static void on_crash(int number)
{
    (void)printf("VIOLATION: an assertion of the code failed\n");
    sim_print_notes(EVENTS_TOLD);
    (void)fflush(stdout);
    _exit(1);
}

static int tell_failure(const struct options *options, uint64_t seed)
{
    const uint32_t mask = fewest_faults(options, seed);
    (void)printf("FAILED seed %" PRIu64 " at commit %s%s%s\n", seed, commit(),
                 options->mutant != MUTANT_NONE ? ", mutant " : "",
                 options->mutant != MUTANT_NONE ? mutants[options->mutant].name : "");
    (void)fflush(stdout);
    const struct sigaction action = {.sa_handler = on_crash};
    (void)sigaction(SIGABRT, &action, NULL);
    set_mutant(options->mutant);
    schedule_run(seed, mask, true);
    (void)printf("faults needed:");
    print_faults(sim.faults);
    (void)printf("the last events:\n");
    sim_print_notes(options->notes);
    (void)printf("VIOLATION: %s\nreplay: tidegate-sim --replay %" PRIu64 "%s%s\n",
                 sim.failed ? sim.failure : "not with these faults alone", seed,
                 options->mutant != MUTANT_NONE ? " --mutant " : "",
                 options->mutant != MUTANT_NONE ? mutants[options->mutant].name : "");
    return 1;
}

static int tell_totals(const struct options *options, const struct sim_totals *sum, double seconds)
{
    int missing = 0;
    (void)printf("%" PRIu64 " schedules of %" PRIu64 " events (least %" PRIu64 "), %" PRIu64
                 " holds, %" PRIu64 " sold, %" PRIu64 " rounds of proof\n",
                 sum->schedules, sum->events / (sum->schedules > 0 ? sum->schedules : 1),
                 sum->events_least, sum->holds, sum->sold, sum->rounds);
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        (void)printf("  %-22s %12" PRIu64 "\n", fault_names[fault], sum->faults[fault]);
        missing += sum->faults[fault] == 0;
    }
    (void)printf("%.0f schedules/s on %u process%s, %.1f s, commit %s\n",
                 (double)sum->schedules / seconds, options->jobs, options->jobs > 1 ? "es" : "",
                 seconds, commit());
    if (missing > 0 && sum->schedules >= 2000) {
        (void)printf("FAILED: %d classes of faults never occurred\n", missing);
        return 1;
    }
    (void)printf("0 violations, 0 false alarms\n");
    return 0;
}

/* The first seed that failed, or UINT64_MAX. */
static uint64_t run_all(const struct options *options, struct sim_totals *out_sum)
{
    uint64_t failed = UINT64_MAX;
    const struct job *jobs = run_jobs(options);
    memset(out_sum, 0, sizeof *out_sum);
    for (uint32_t i = 0; i < options->jobs; i++) {
        add_totals(out_sum, &jobs[i].totals);
        failed = jobs[i].seed < failed ? jobs[i].seed : failed;
    }
    (void)munmap((void *)(uintptr_t)jobs, JOBS_MAX * sizeof *jobs);
    return failed;
}

/* ---- seeds that failed once ---- */

static int run_known(const struct options *options)
{
    char line[256];
    uint32_t count = 0;
    FILE *file = options->seeds_file != NULL ? fopen(options->seeds_file, "r") : NULL;
    if (file == NULL) {
        return options->seeds_file != NULL ? 66 : 0;
    }
    while (fgets(line, sizeof line, file) != NULL && count < SEEDS_KNOWN_MAX) {
        char *end = NULL;
        const uint64_t seed = strtoull(line, &end, 10);
        if (end == line) {
            continue;
        }
        count++;
        if (fails(options, seed, options->mask)) {
            (void)fclose(file);
            return tell_failure(options, seed);
        }
    }
    (void)fclose(file);
    (void)printf("%u seeds that failed once pass\n", count);
    return 0;
}

/* ---- mutants ---- */

static int run_mutants(const struct options *given)
{
    uint32_t survived = 0;
    for (int mutant = 1; mutant < MUTANT_COUNT; mutant++) {
        struct options options = *given;
        struct sim_totals sum;
        options.mutant = (enum sim_mutant)mutant;
        options.count = mutants[mutant].seeds;
        options.seconds = 0;
        const double begun = now_s();
        (void)fflush(stdout);
        const uint64_t seed = run_all(&options, &sum);
        (void)printf("%-26s %s %8" PRIu64 "  %5.1f s\n", mutants[mutant].name,
                     seed != UINT64_MAX ? "dies at seed" : "SURVIVES",
                     seed != UINT64_MAX ? seed : 0, now_s() - begun);
        survived += seed == UINT64_MAX;
    }
    (void)printf("%d mutants, %u survive\n", MUTANT_COUNT - 1, survived);
    return survived > 0;
}

/* ---- options ---- */

static int usage(int code)
{
    (void)printf(
        "tidegate-sim [--seeds N] [--from S] [--seconds T] [--jobs J] [--mutant NAME] "
        "[--without FAULT]\n"
        "             [--replay SEED [--events N]] [--mutants] [--known FILE]\n\nmutants:");
    for (int mutant = 1; mutant < MUTANT_COUNT; mutant++) {
        (void)printf(" %s", mutants[mutant].name);
    }
    (void)printf("\nfaults:");
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        (void)printf(" %s", fault_names[fault]);
    }
    (void)printf("\n");
    return code;
}

static bool take_name(const char *name, struct options *options, bool mutant)
{
    for (int i = 0; mutant && i < MUTANT_COUNT; i++) {
        if (strcmp(mutants[i].name, name) == 0) {
            options->mutant = (enum sim_mutant)i;
            return true;
        }
    }
    for (int i = 0; !mutant && i < FAULT_COUNT; i++) {
        if (strcmp(fault_names[i], name) == 0) {
            options->mask &= ~(UINT32_C(1) << i);
            return true;
        }
    }
    return false;
}

static int take_option(int letter, struct options *options)
{
    switch (letter) {
    case 'n':
        options->count = strtoull(optarg, NULL, 10);
        return 0;
    case 'f':
        options->from = strtoull(optarg, NULL, 10);
        return 0;
    case 't':
        options->seconds = (int)strtol(optarg, NULL, 10);
        options->count = UINT64_MAX / 2;
        return 0;
    case 'j':
        options->jobs = (uint32_t)strtoul(optarg, NULL, 10);
        return options->jobs < 1 || options->jobs > JOBS_MAX ? 64 : 0;
    case 'm':
        return take_name(optarg, options, true) ? 0 : 64;
    case 'w':
        return take_name(optarg, options, false) ? 0 : 64;
    case 'r':
        options->replay = strtoull(optarg, NULL, 10);
        options->replays = true;
        return 0;
    case 'M':
        options->all_mutants = true;
        return 0;
    case 'e':
        options->notes = (uint32_t)strtoul(optarg, NULL, 10);
        return 0;
    case 'k':
        options->seeds_file = optarg;
        return 0;
    default:
        break;
    }
    return 64;
}

static int replay(const struct options *options)
{
    if (fails(options, options->replay, options->mask)) {
        return tell_failure(options, options->replay);
    }
    set_mutant(options->mutant);
    schedule_run(options->replay, options->mask, true);
    sim_print_notes(options->notes);
    (void)printf("seed %" PRIu64 ": %u events, no violation; faults:", options->replay, sim.events);
    print_faults(sim.faults);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"seeds", required_argument, NULL, 'n'},   {"from", required_argument, NULL, 'f'},
        {"seconds", required_argument, NULL, 't'}, {"jobs", required_argument, NULL, 'j'},
        {"mutant", required_argument, NULL, 'm'},  {"without", required_argument, NULL, 'w'},
        {"replay", required_argument, NULL, 'r'},  {"mutants", no_argument, NULL, 'M'},
        {"events", required_argument, NULL, 'e'},  {"known", required_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    struct options options = {
        .from = 1, .count = 10000, .jobs = 2, .mask = UINT32_MAX, .notes = EVENTS_TOLD};
    struct sim_totals sum;
    int letter;
    while ((letter = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (letter == 'h') {
            return usage(0);
        }
        if (take_option(letter, &options) != 0) {
            return usage(64);
        }
    }
    sim_keys_open();
    if (options.replays) {
        return replay(&options);
    }
    if (options.all_mutants) {
        return run_mutants(&options);
    }
    const int known = options.mutant == MUTANT_NONE ? run_known(&options) : 0;
    if (known != 0) {
        return known;
    }
    const double begun = now_s();
    (void)fflush(stdout);
    const uint64_t failed = run_all(&options, &sum);
    if (failed != UINT64_MAX) {
        return tell_failure(&options, failed);
    }
    return tell_totals(&options, &sum, now_s() - begun);
}
