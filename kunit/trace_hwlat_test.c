// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the hardware latency tracer's sampling loop
 *
 * The unit includes trace_hwlat.c itself, so the code under test is the real
 * get_sample(), built a second time with its surroundings replaced: the clock
 * is a script, and what would go into the ring buffer is looked at here. The
 * tracer of the running kernel is not touched.
 */

/*
 * The two global symbols of the second copy must not clash with those of the
 * first one. Before any header, so that their declarations follow.
 */
#define trace_hwlat_callback_enabled	hwlat_test_callback_enabled
#define trace_hwlat_callback		hwlat_test_callback

#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/cpu.h>
#include <linux/ftrace_irq.h>
#include <linux/hw_breakpoint.h>
#include <linux/init.h>
#include <linux/math64.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/stop_machine.h>
#include <linux/trace_clock.h>

#include "trace.h"

#define TEST_WIDTH_US		100
#define TEST_THRESH_US		10
/* One turn of the loop reads the clock twice and takes 1us */
#define TEST_STEP_NS		(NSEC_PER_USEC / 2)
/* The start, and two reads for each turn up to the one which exceeds the width */
#define TEST_FULL_READS		(1 + 2 * (TEST_WIDTH_US + 1))
/* Where the clock ends a sample that does not come to an end on its own */
#define TEST_MAX_READS		(10 * TEST_FULL_READS)
#define TEST_NR_JUMPS		3
/* Of each CPU when all take them at once, and with a watchpoint that makes them meet */
#define TEST_SAMPLES		20000
#define TEST_SAMPLES_WATCHED	500
/* Turns that a CPU waits for another one to come */
#define TEST_PATIENCE		1000
/* One more chance each for a race that a busy host keeps from happening */
#define TEST_ROUNDS		10

/* At the clock read number @read, counted from 1, time moves @ns further than usual */
struct hwlat_test_jump {
	unsigned int	read;
	s64		ns;
};

struct hwlat_test_clock {
	u64			now;
	u64			step;
	unsigned int		reads;
	struct hwlat_test_jump	jumps[TEST_NR_JUMPS];
	void			(*hook)(unsigned int read);
};

/* The script which a CPU's clock follows */
static DEFINE_PER_CPU(struct hwlat_test_clock *, hwlat_test_clock);
static DEFINE_PER_CPU(struct hwlat_entry, hwlat_test_entries);

/* What one test case sees of the tracer, all but @seen for one CPU at a time */
static struct {
	struct hwlat_entry	before;		/* the sample reported last but one */
	struct hwlat_entry	last;		/* the sample reported last */
	unsigned int		reported;	/* number of samples reported */
	unsigned int		errors;		/* number of error messages */
	unsigned long		*seen;		/* sequence numbers, from 1 */
	unsigned long		nr_seen;	/* size of @seen in bits */
	atomic_t		duplicates;
	atomic_t		out_of_range;
} hwlat_test;

static struct trace_array hwlat_test_tr;
static unsigned long hwlat_test_thresh;

static u64 hwlat_test_clock_read(void)
{
	struct hwlat_test_clock *clock = __this_cpu_read(hwlat_test_clock);
	int i;

	clock->reads++;
	clock->now += clock->step;
	for (i = 0; i < TEST_NR_JUMPS; i++) {
		if (clock->jumps[i].read == clock->reads)
			clock->now += clock->jumps[i].ns;
	}
	if (clock->reads > TEST_MAX_READS)
		clock->now += NSEC_PER_SEC;
	if (clock->hook)
		clock->hook(clock->reads);
	return clock->now;
}

static struct ring_buffer_event *hwlat_test_reserve(struct trace_buffer *buffer, int type,
						    unsigned long len, unsigned int trace_ctx)
{
	return (struct ring_buffer_event *)this_cpu_ptr(&hwlat_test_entries);
}

static void *hwlat_test_event_data(struct ring_buffer_event *event)
{
	return event;
}

static void hwlat_test_commit(struct trace_buffer *buffer, struct ring_buffer_event *event)
{
	struct hwlat_entry *entry = (struct hwlat_entry *)event;

	if (!hwlat_test.seen) {
		hwlat_test.before = hwlat_test.last;
		hwlat_test.last = *entry;
		hwlat_test.reported++;
	} else if (!entry->seqnum || entry->seqnum > hwlat_test.nr_seen) {
		atomic_inc(&hwlat_test.out_of_range);
	} else if (test_and_set_bit(entry->seqnum - 1, hwlat_test.seen)) {
		atomic_inc(&hwlat_test.duplicates);
	}
}

static void hwlat_test_error(struct trace_buffer *buffer, unsigned long ip, const char *msg)
{
	hwlat_test.errors++;
}

static void hwlat_test_fsnotify(struct trace_array *tr)
{
}

#undef latency_fsnotify
#define latency_fsnotify			hwlat_test_fsnotify
#define hwlat_per_cpu_data			hwlat_test_per_cpu_data
#define tracing_thresh				hwlat_test_thresh
#define trace_clock_local			hwlat_test_clock_read
#define trace_buffer_lock_reserve		hwlat_test_reserve
#define ring_buffer_event_data			hwlat_test_event_data
#define trace_buffer_unlock_commit_nostack	hwlat_test_commit
#define trace_array_printk_buf			hwlat_test_error

/* Nor is a second tracer registered */
#undef late_initcall
#define late_initcall(fn) \
	static const initcall_t hwlat_test_unused_initcall __initconst __maybe_unused = (fn)

#include "trace_hwlat.c"

/* Whatever type the count has: that is what a fix may change */
static void hwlat_test_reset_count(void)
{
	memset(&hwlat_data.count, 0, sizeof(hwlat_data.count));
}

/* One sample on this CPU; returns what get_sample() returns */
static int hwlat_test_sample(struct kunit *test)
{
	struct hwlat_test_clock *clock = test->priv;
	unsigned long flags;
	int ret;

	local_irq_save(flags);
	__this_cpu_write(hwlat_test_clock, clock);
	clock->reads = 0;
	ret = get_sample();
	local_irq_restore(flags);
	return ret;
}

static unsigned int hwlat_test_reads(struct kunit *test)
{
	struct hwlat_test_clock *clock = test->priv;

	return clock->reads;
}

/* What was measured goes to the log, whatever is then asserted of it */
static void hwlat_test_figure(struct kunit *test, const char *name, s64 value)
{
	kunit_info(test, "%s=%lld", name, value);
}

/* At clock read @read of each sample that follows, time jumps by @ns */
static void hwlat_test_jump(struct kunit *test, int nr, unsigned int read, s64 ns)
{
	struct hwlat_test_clock *clock = test->priv;

	clock->jumps[nr] = (struct hwlat_test_jump){ read, ns };
}

/* The clock reads of turn @turn of the sampling loop, counted from 0 */
static unsigned int hwlat_test_t1(unsigned int turn)
{
	return 2 + 2 * turn;
}

static unsigned int hwlat_test_t2(unsigned int turn)
{
	return 3 + 2 * turn;
}

static void hwlat_test_nothing_reported(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 0);
	KUNIT_EXPECT_EQ(test, hwlat_test.reported, 0);
	KUNIT_EXPECT_EQ(test, hwlat_test.errors, 0);
	KUNIT_EXPECT_EQ(test, hwlat_test_tr.max_latency, 0);
}

/* A sample over the threshold is reported, and carries the number @seqnum */
static void hwlat_test_next_seqnum_is(struct kunit *test, u64 seqnum)
{
	hwlat_test_jump(test, 0, hwlat_test_t2(3), 50 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.seqnum, seqnum);
}

static void quiet_sample_not_reported(struct kunit *test)
{
	hwlat_test_nothing_reported(test);
	KUNIT_EXPECT_EQ(test, hwlat_test_reads(test), TEST_FULL_READS);
	hwlat_test_next_seqnum_is(test, 1);
}

static void threshold_itself_not_reported(struct kunit *test)
{
	/* Exactly the threshold, and as far above as microseconds do not show */
	hwlat_test_jump(test, 0, hwlat_test_t2(3),
			TEST_THRESH_US * NSEC_PER_USEC - TEST_STEP_NS);
	hwlat_test_jump(test, 1, hwlat_test_t1(5),
			(TEST_THRESH_US + 1) * NSEC_PER_USEC - TEST_STEP_NS - 1);
	hwlat_test_nothing_reported(test);

	hwlat_test_jump(test, 1, 0, 0);
	hwlat_test_next_seqnum_is(test, 1);
}

static void above_threshold_reported(struct kunit *test)
{
	hwlat_test_jump(test, 0, hwlat_test_t2(3),
			(TEST_THRESH_US + 1) * NSEC_PER_USEC - TEST_STEP_NS);
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.reported, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.duration, TEST_THRESH_US + 1);
}

static void inner_loop_latency_reported(struct kunit *test)
{
	hwlat_test_jump(test, 0, hwlat_test_t2(3), 42 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.reported, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.duration, 42);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.outer_duration, 0);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.count, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.seqnum, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.nmi_count, 0);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.nmi_total_ts, 0);
}

static void outer_loop_latency_reported(struct kunit *test)
{
	hwlat_test_jump(test, 0, hwlat_test_t1(3), 42 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.reported, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.duration, 0);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.outer_duration, 42);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.count, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.seqnum, 1);
}

/* The time before the first turn belongs to no turn */
static void first_turn_has_no_outer_latency(struct kunit *test)
{
	hwlat_test_jump(test, 0, hwlat_test_t1(0), 42 * NSEC_PER_USEC);
	hwlat_test_nothing_reported(test);
}

static void longest_latency_and_all_turns_reported(struct kunit *test)
{
	hwlat_test_jump(test, 0, hwlat_test_t2(3), 21 * NSEC_PER_USEC);
	hwlat_test_jump(test, 1, hwlat_test_t1(4), 33 * NSEC_PER_USEC);
	hwlat_test_jump(test, 2, hwlat_test_t2(6), 17 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.reported, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.duration, 21);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.outer_duration, 33);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.count, 3);
}

static void seqnums_count_reported_samples(struct kunit *test)
{
	hwlat_test_next_seqnum_is(test, 1);
	hwlat_test_next_seqnum_is(test, 2);

	hwlat_test_jump(test, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 0);

	hwlat_test_next_seqnum_is(test, 3);
	KUNIT_EXPECT_EQ(test, hwlat_test.reported, 3);
}

/*
 * The differences are computed unsigned, therefore a step back does not look
 * negative but like 584 years. What counts is that the loop comes to an end
 * and that nobody takes the outcome for a latency: it is refused, or absurd.
 */
static void clock_running_backwards(struct kunit *test)
{
	int ret;

	hwlat_test_jump(test, 0, hwlat_test_t2(3), -2 * (s64)NSEC_PER_USEC);
	ret = hwlat_test_sample(test);
	KUNIT_EXPECT_LE(test, hwlat_test_reads(test), TEST_FULL_READS + 4);
	if (ret < 0) {
		KUNIT_EXPECT_EQ(test, hwlat_test.reported, 0);
		KUNIT_EXPECT_EQ(test, hwlat_test.errors, 1);
	} else {
		KUNIT_EXPECT_TRUE(test, hwlat_test.errors ||
				  hwlat_test.last.duration > div_u64(S64_MAX, 1000));
	}
}

static void total_overflow_ends_sample(struct kunit *test)
{
	/* Back before the previous turn's end, not before the start */
	hwlat_test_jump(test, 0, hwlat_test_t2(30), -20 * (s64)NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 0);
	KUNIT_EXPECT_EQ(test, hwlat_test_reads(test), hwlat_test_t2(30));
	KUNIT_EXPECT_EQ(test, hwlat_test.errors, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.reported, 0);
	KUNIT_EXPECT_FALSE(test, hwlat_test_callback_enabled);
	hwlat_test_next_seqnum_is(test, 1);
}

static void max_latency_is_running_maximum(struct kunit *test)
{
	static const int latency_us[] = { 20, 15, 30, 30, 29 };
	static const int maximum_us[] = { 20, 20, 30, 30, 30 };
	int i;

	for (i = 0; i < ARRAY_SIZE(latency_us); i++) {
		/* Inner and outer loop in turn, the maximum is over both */
		hwlat_test_jump(test, 0, i % 2 ? hwlat_test_t1(3) : hwlat_test_t2(3),
				latency_us[i] * NSEC_PER_USEC);
		KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 1);
		KUNIT_EXPECT_EQ(test, hwlat_test_tr.max_latency, maximum_us[i]);
	}
}

/* Two NMIs, 7us and a little each, between two clock reads of turn 5 */
static void hwlat_test_nmis(unsigned int read)
{
	struct hwlat_test_clock *clock = __this_cpu_read(hwlat_test_clock);
	int i;

	if (read != hwlat_test_t1(5))
		return;
	clock->hook = NULL;
	for (i = 0; i < 2; i++) {
		hwlat_test_callback(true);
		clock->now += 7 * NSEC_PER_USEC + 300 - TEST_STEP_NS;
		hwlat_test_callback(false);
	}
}

static void nmi_time_reported_in_us(struct kunit *test)
{
	/* A clock which NMIs must not read gives their number, but no time */
	u64 nmi_us = IS_ENABLED(CONFIG_GENERIC_SCHED_CLOCK) ? 0 : 14;

	struct hwlat_test_clock *clock = test->priv;

	hwlat_single_cpu_data.kthread = current;
	clock->hook = hwlat_test_nmis;
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.nmi_count, 2);
	KUNIT_EXPECT_EQ(test, hwlat_test.last.nmi_total_ts, nmi_us);
}

static void hwlat_test_shrink_width(unsigned int read)
{
	if (read == hwlat_test_t2(9))
		WRITE_ONCE(hwlat_data.sample_width, TEST_WIDTH_US / 20);
}

static void sample_width_change_ignored(struct kunit *test)
{
	struct hwlat_test_clock *clock = test->priv;
	int ret;

	clock->hook = hwlat_test_shrink_width;
	ret = hwlat_test_sample(test);
	hwlat_test_figure(test, "clock_reads", hwlat_test_reads(test));
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, hwlat_test_reads(test), TEST_FULL_READS);

	/* It is the width of the next sample */
	KUNIT_EXPECT_EQ(test, hwlat_test_sample(test), 0);
	KUNIT_EXPECT_EQ(test, hwlat_test_reads(test),
			1 + 2 * (TEST_WIDTH_US / 20 + 1));
}

#if defined(CONFIG_HAVE_HW_BREAKPOINT) && defined(CONFIG_64BIT)
static struct perf_event *hwlat_test_watch(struct kunit *test, void *variable, int type,
					   perf_overflow_handler_t seen)
{
	struct perf_event_attr attr;
	struct perf_event *watch;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)variable;
	attr.bp_len = HW_BREAKPOINT_LEN_8;
	attr.bp_type = type;
	watch = perf_event_create_kernel_counter(&attr, -1, current, seen, NULL);
	if (IS_ERR(watch))
		kunit_skip(test, "no hardware watchpoint: error %ld", PTR_ERR(watch));
	return watch;
}

static atomic_t hwlat_test_hits;

static void hwlat_test_load_seen(struct perf_event *event, struct perf_sample_data *data,
				 struct pt_regs *regs)
{
	atomic_inc(&hwlat_test_hits);
}

static void sample_width_loaded_once(struct kunit *test)
{
	struct perf_event *watch;
	u64 sample_width;
	int loads, ret;

	atomic_set(&hwlat_test_hits, 0);
	watch = hwlat_test_watch(test, &hwlat_data.sample_width, HW_BREAKPOINT_RW,
				 hwlat_test_load_seen);

	/* A watchpoint that sees nothing proves nothing */
	sample_width = READ_ONCE(hwlat_data.sample_width);
	KUNIT_EXPECT_EQ(test, sample_width, TEST_WIDTH_US);
	KUNIT_EXPECT_EQ(test, atomic_xchg(&hwlat_test_hits, 0), 1);

	ret = hwlat_test_sample(test);
	loads = atomic_read(&hwlat_test_hits);
	hwlat_test_figure(test, "loads", loads);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, loads, 1);

	perf_event_release_kernel(watch);
}

/*
 * Another sample comes in between, as if from another CPU, after the first access
 * to the count: the load, if that is apart from the store, or else both of them.
 */
static void hwlat_test_count_seen(struct perf_event *event, struct perf_sample_data *data,
				  struct pt_regs *regs)
{
	if (atomic_inc_return(&hwlat_test_hits) == 1) {
		__this_cpu_read(hwlat_test_clock)->reads = 0;
		get_sample();
	}
}

static void seqnum_unique_if_interrupted(struct kunit *test)
{
	struct perf_event *watch;
	int ret;

	/* Elsewhere a watchpoint may stop an atomic operation, and that for ever */
	if (!IS_ENABLED(CONFIG_X86_64))
		kunit_skip(test, "needs watchpoints that report behind an atomic operation");

	hwlat_test_jump(test, 0, hwlat_test_t2(3), 50 * NSEC_PER_USEC);
	atomic_set(&hwlat_test_hits, 1);
	watch = hwlat_test_watch(test, &hwlat_data.count, HW_BREAKPOINT_RW, hwlat_test_count_seen);

	/* A watchpoint that sees nothing proves nothing */
	hwlat_test_reset_count();
	KUNIT_EXPECT_GT(test, atomic_xchg(&hwlat_test_hits, 0), 1);

	ret = hwlat_test_sample(test);
	perf_event_release_kernel(watch);

	hwlat_test_figure(test, "samples", hwlat_test.reported);
	hwlat_test_figure(test, "duplicates", hwlat_test.reported == 2 &&
			  hwlat_test.before.seqnum == hwlat_test.last.seqnum);
	KUNIT_EXPECT_EQ(test, ret, 1);

	/*
	 * The one in between was counted second and reported first. Emulators do not
	 * see an atomic operation: then there is no moment for one in between.
	 */
	KUNIT_EXPECT_EQ(test, hwlat_test.last.seqnum, 1);
	KUNIT_EXPECT_EQ(test, hwlat_test.before.seqnum, hwlat_test.reported == 2 ? 2 : 0);
}

/* Whoever comes to the count waits for a moment, until the next CPU has come as well */
static void hwlat_test_count_shared(struct perf_event *event, struct perf_sample_data *data,
				    struct pt_regs *regs)
{
	int hits = atomic_inc_return(&hwlat_test_hits);
	int i;

	for (i = 0; i < TEST_PATIENCE && atomic_read(&hwlat_test_hits) == hits; i++)
		cpu_relax();
}

/* Without watchpoints it takes more luck */
static struct perf_event * __percpu *hwlat_test_watch_count(void)
{
	struct perf_event * __percpu *watch;
	struct perf_event_attr attr;

	if (!IS_ENABLED(CONFIG_X86_64))
		return NULL;
	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)&hwlat_data.count;
	attr.bp_len = HW_BREAKPOINT_LEN_8;
	attr.bp_type = HW_BREAKPOINT_RW;
	watch = register_wide_hw_breakpoint(&attr, hwlat_test_count_shared, NULL);
	return IS_ERR((void __force *)watch) ? NULL : watch;
}

static void hwlat_test_unwatch_count(struct perf_event * __percpu *watch)
{
	if (watch)
		unregister_wide_hw_breakpoint(watch);
}
#else
static void sample_width_loaded_once(struct kunit *test)
{
	kunit_skip(test, "no hardware watchpoints for a 64-bit variable here");
}

static void seqnum_unique_if_interrupted(struct kunit *test)
{
	kunit_skip(test, "no hardware watchpoints for a 64-bit variable here");
}

static struct perf_event * __percpu *hwlat_test_watch_count(void)
{
	return NULL;
}

static void hwlat_test_unwatch_count(struct perf_event * __percpu *watch)
{
}
#endif

static int hwlat_test_hammer(void *samples)
{
	/* Every read is over the threshold, so every sample is one turn */
	struct hwlat_test_clock clock = { .step = 2 * TEST_THRESH_US * NSEC_PER_USEC };
	unsigned int i;

	__this_cpu_write(hwlat_test_clock, &clock);
	for (i = 0; i < *(unsigned int *)samples; i++) {
		clock.reads = 0;
		get_sample();
	}
	return 0;
}

/* All CPUs take @samples each at the same time; returns whether each number was there once */
static bool hwlat_test_race(unsigned int samples)
{
	unsigned long nr_seen;

	/* Nobody comes or goes between the count and the run */
	cpus_read_lock();
	hwlat_test.nr_seen = (unsigned long)num_online_cpus() * samples;
	bitmap_zero(hwlat_test.seen, hwlat_test.nr_seen);
	hwlat_test_reset_count();
	stop_machine_cpuslocked(hwlat_test_hammer, &samples, cpu_online_mask);
	nr_seen = bitmap_weight(hwlat_test.seen, hwlat_test.nr_seen);
	cpus_read_unlock();

	/* As many numbers as samples and none twice: each one from 1 on */
	return nr_seen == hwlat_test.nr_seen;
}

static void seqnum_unique_across_cpus(struct kunit *test)
{
	unsigned long most = (unsigned long)num_possible_cpus() * TEST_SAMPLES;
	struct perf_event * __percpu *watch;
	bool unique;
	int round;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");

	hwlat_test.seen = kvcalloc(BITS_TO_LONGS(most), sizeof(long), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hwlat_test.seen);
	hwlat_data.thread_mode = MODE_PER_CPU;
	hwlat_data.sample_width = 0;

	watch = hwlat_test_watch_count();
	unique = hwlat_test_race(TEST_SAMPLES_WATCHED);
	hwlat_test_unwatch_count(watch);
	for (round = 0; round < TEST_ROUNDS && unique; round++)
		unique = hwlat_test_race(TEST_SAMPLES);

	hwlat_test_figure(test, "samples", hwlat_test.nr_seen);
	hwlat_test_figure(test, "duplicates", atomic_read(&hwlat_test.duplicates));
	KUNIT_EXPECT_EQ(test, atomic_read(&hwlat_test.duplicates), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&hwlat_test.out_of_range), 0);
	KUNIT_EXPECT_TRUE(test, unique);
}

static int hwlat_test_init(struct kunit *test)
{
	struct hwlat_test_clock *clock;

	clock = kunit_kzalloc(test, sizeof(*clock), GFP_KERNEL);
	if (!clock)
		return -ENOMEM;
	clock->step = TEST_STEP_NS;
	test->priv = clock;

	memset(&hwlat_test, 0, sizeof(hwlat_test));
	memset(&hwlat_test_tr, 0, sizeof(hwlat_test_tr));
	memset(&hwlat_single_cpu_data, 0, sizeof(hwlat_single_cpu_data));

	hwlat_trace = &hwlat_test_tr;
	hwlat_test_thresh = TEST_THRESH_US * NSEC_PER_USEC;
	hwlat_data.sample_width = TEST_WIDTH_US;
	hwlat_data.thread_mode = MODE_NONE;
	hwlat_test_reset_count();
	return 0;
}

static void hwlat_test_exit(struct kunit *test)
{
	kvfree(hwlat_test.seen);
	hwlat_test.seen = NULL;
}

static struct kunit_case hwlat_test_cases[] = {
	KUNIT_CASE(quiet_sample_not_reported),
	KUNIT_CASE(threshold_itself_not_reported),
	KUNIT_CASE(above_threshold_reported),
	KUNIT_CASE(inner_loop_latency_reported),
	KUNIT_CASE(outer_loop_latency_reported),
	KUNIT_CASE(first_turn_has_no_outer_latency),
	KUNIT_CASE(longest_latency_and_all_turns_reported),
	KUNIT_CASE(seqnums_count_reported_samples),
	KUNIT_CASE(clock_running_backwards),
	KUNIT_CASE(total_overflow_ends_sample),
	KUNIT_CASE(max_latency_is_running_maximum),
	KUNIT_CASE(nmi_time_reported_in_us),
	KUNIT_CASE(sample_width_change_ignored),
	KUNIT_CASE(sample_width_loaded_once),
	KUNIT_CASE(seqnum_unique_if_interrupted),
	KUNIT_CASE(seqnum_unique_across_cpus),
	{}
};

static struct kunit_suite hwlat_test_suite = {
	.name		= "hwlat",
	.init		= hwlat_test_init,
	.exit		= hwlat_test_exit,
	.test_cases	= hwlat_test_cases,
};

kunit_test_suite(hwlat_test_suite);
