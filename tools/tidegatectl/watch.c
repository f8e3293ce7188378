/* SPDX-License-Identifier: Apache-2.0
 * watch: redraws every 500 ms on a terminal; elsewhere one line a second. */
#include "lib/io/now.h"
#include "tools/tidegatectl/session.h"
#include "tools/tidegatectl/view.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { DRAW_MS = 500, LINE_MS = 1000 };
#define NO_SALE ": is there such a sale (tidegatectl sale show), and do its daemons run?"

struct watch {
    const struct ctl_options *options;
    struct ctl_session session;
    struct ctl_view view;
    uv_timer_t draw;
    uv_signal_t interrupt;
    bool terminal, ended;
};

/* The message, if it is of our sale. */
static bool is_ours(const struct watch *watch, const struct tg_bus_incoming *incoming)
{
    return strcmp(tg_bus_sale(incoming), watch->view.sale) == 0;
}

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct watch *watch = context;
    if (is_ours(watch, take_incoming)) {
        ctl_view_stock(&watch->view, (const Tidegate__V1__Stock *)tg_bus_body(take_incoming),
                       tg_now_mono());
    }
    tg_bus_release(take_incoming);
}

static void on_board(void *context, struct tg_bus_incoming *take_incoming)
{
    struct watch *watch = context;
    if (is_ours(watch, take_incoming)) {
        ctl_view_board(&watch->view, (const Tidegate__V1__Board *)tg_bus_body(take_incoming),
                       tg_now_mono());
    }
    tg_bus_release(take_incoming);
}

static void on_pace(void *context, struct tg_bus_incoming *take_incoming)
{
    struct watch *watch = context;
    if (is_ours(watch, take_incoming)) {
        ctl_view_pace(&watch->view, (const Tidegate__V1__Pace *)tg_bus_body(take_incoming),
                      tg_now_mono());
    }
    tg_bus_release(take_incoming);
}

static void on_state(void *context, struct tg_bus_incoming *take_incoming)
{
    struct watch *watch = context;
    if (is_ours(watch, take_incoming)) {
        ctl_view_state(&watch->view, (const Tidegate__V1__SaleState *)tg_bus_body(take_incoming),
                       tg_now_mono());
    }
    tg_bus_release(take_incoming);
}

static bool is_heard(const struct watch *watch)
{
    const struct ctl_view *view = &watch->view;
    return view->stock_heard.ever || view->board_heard.ever || view->state_heard.ever ||
           view->pace_heard.ever;
}

static void on_draw(uv_timer_t *timer)
{
    struct watch *watch = timer->data;
    struct tg_mono now = tg_now_mono();
    if (watch->options->format != CTL_TABLE) {
        ctl_print_document(watch->options->format, ctl_view_json(&watch->view, now));
    } else if (watch->terminal) {
        (void)fputs("\033[H\033[2J", stdout);
        ctl_view_screen(stdout, watch->options, &watch->view, now);
        (void)fputs(is_heard(watch) ? "" : "\n  Nothing is heard" NO_SALE "\n", stdout);
        (void)fputs("\n  Ctrl-C ends the view; the sale goes on.\n", stdout);
    } else {
        ctl_view_line(stdout, &watch->view, now);
    }
    if (fflush(stdout) != 0) {
        watch->ended = true; /* the reader is gone */
    }
}

static void on_interrupt(uv_signal_t *signal, int number)
{
    struct watch *watch = signal->data;
    watch->ended = true;
}

static bool is_ended(const void *context)
{
    const struct watch *watch = context;
    return watch->ended;
}

static int listen_to_all(struct watch *watch)
{
    static const struct tg_bus_subject heard[] = {{TG_MESSAGE_GATE_STOCK, on_stock},
                                                  {TG_MESSAGE_QUEUE_BOARD, on_board},
                                                  {TG_MESSAGE_ADMISSION_PACE, on_pace},
                                                  {TG_MESSAGE_STATE, on_state}};
    return tg_bus_serve_all(watch->session.bus, heard, sizeof(heard) / sizeof(heard[0]), watch);
}

static void run(struct watch *watch, int64_t span_ms)
{
    uint64_t period = watch->terminal ? DRAW_MS : LINE_MS;
    (void)uv_timer_init(&watch->session.loop, &watch->draw);
    (void)uv_signal_init(&watch->session.loop, &watch->interrupt);
    watch->draw.data = watch->interrupt.data = watch;
    (void)uv_timer_start(&watch->draw, on_draw, period, period);
    (void)uv_signal_start(&watch->interrupt, on_interrupt, SIGINT);
    (void)ctl_session_until(&watch->session, is_ended, watch, span_ms);
    uv_close((uv_handle_t *)&watch->draw, NULL);
    uv_close((uv_handle_t *)&watch->interrupt, NULL);
}

enum ctl_exit ctl_watch(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    static struct watch watch; /* one per process */
    int64_t span_ms = INT64_MAX / 2;
    const char *sale = arguments->positional[0];
    if (!ctl_sale_name(sale) ||
        (arguments->span != NULL &&
         !ctl_duration("--for", arguments->span, 1, INT64_C(7) * 24 * 3600 * 1000, &span_ms))) {
        return CTL_USAGE;
    }
    watch.options = options;
    watch.terminal = isatty(STDOUT_FILENO) != 0;
    (void)snprintf(watch.view.sale, sizeof(watch.view.sale), "%s", sale);
    enum ctl_exit code = ctl_session_open(options, false, &watch.session);
    if (code != CTL_DONE) {
        return code;
    }
    int error = listen_to_all(&watch);
    if (error == 0) {
        run(&watch, span_ms);
        if (!is_heard(&watch)) {
            (void)fprintf(stderr, "tidegatectl: nothing was heard of %s" NO_SALE "\n", sale);
            code = CTL_UNREACHABLE;
        }
    } else {
        ctl_session_explain(&watch.session, "bus", error);
        code = CTL_UNREACHABLE;
    }
    ctl_session_close(&watch.session);
    return code;
}
