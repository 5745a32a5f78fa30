// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the jiffies update from the tick
 *
 * Included at the end of tick-sched.c, as tick_sched_do_timer() and the state
 * which it works on are static there. Every test plays its ticks on a tick_sched
 * of its own while all CPUs sit in stop_machine(), so that no real tick comes
 * in between, and puts jiffies and their companions back before they leave it.
 *
 * One CPU, the director, goes through the test and can hold jiffies_lock. The
 * other ones do a tick each time they are told. A director without other CPUs
 * does the ticks as well.
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/debug_locks.h>
#include <linux/delay.h>
#include <linux/nmi.h>
#include <linux/stop_machine.h>

/* What users of a kernel see as the length of a stall, whatever its name is */
#define TEST_STALLED_TICKS	5
/*
 * One turn of the director while it waits for other CPUs. Patience is counted in
 * turns: the clock goes on while a host does not run the CPUs, turns do not. They
 * are also some time each, so that a fast machine is as patient as a slow one.
 */
#define TEST_TURN_US		10
/* In so many turns all CPUs but those at the lock get out of a tick, 200ms at least */
#define TEST_TURNS_CONTENDED	20000
/* The same if nobody is seen at the lock, which not every lock shows */
#define TEST_TURNS_SILENT	(10 * TEST_TURNS_CONTENDED)
/* A tick that did not come to its end for so many will not do so any more */
#define TEST_TURNS_LOST		(10 * TEST_TURNS_SILENT)
/* How often to look until jiffies are up to date, and how long to wait for one-shot mode */
#define TEST_READINGS		1000
#define TEST_ONESHOT_MS		5000
#define TEST_MAX_TICKS		10

/* How far a CPU is with the tick that the director told it to do */
enum tick_test_step {
	TICK_TEST_IDLE,
	TICK_TEST_TOLD,
	TICK_TEST_BEGUN,
	TICK_TEST_DONE,
	TICK_TEST_NR_STEPS,
};

struct tick_test_cpu {
	struct tick_sched	ts;
	enum tick_test_step	step;
};

/* What a tick left behind */
struct tick_test_seen {
	bool		waited;		/* for jiffies_lock, until it was dropped */
	unsigned int	stalled;	/* ts->stalled_jiffies */
	unsigned long	not_noted;	/* jiffies since ts->last_tick_jiffies */
	u64		ticks;		/* jiffies since the test's begin */
	ktime_t		next_period;	/* tick_next_period since the test's begin */
	unsigned int	sequence;	/* jiffies_seq since the test's begin */
	int		tick_cpu;	/* tick_do_timer_cpu */
};

struct tick_test {
	void			(*play)(struct tick_test *t);
	struct tick_test_seen	seen[TEST_MAX_TICKS];
	int			nr_seen;

	int			director;
	int			ticker;		/* the CPU which does the single ticks */
	struct tick_test_cpu __percpu *cpus;
	ktime_t			now;		/* the time of the next tick */

	/* What was measured while the lock was held */
	int			nr_waiters;	/* ticks that waited for it */
	u64			ticks_held;	/* jiffies that moved */
	int			nr_ticked;	/* CPUs, when all of them ticked at once */

	/* The globals as they were */
	u64			jiffies;
	ktime_t			next_period;
	ktime_t			last_update;
	unsigned int		sequence;
	int			tick_cpu;

	bool			finished;	/* from the director to the others */
};

/* As they were before the first case */
static s64 tick_test_start_offset;
static bool tick_test_start_oneshot;

static int tick_test_debug_locks;
static int tick_test_debug_locks_silent;

/*
 * The lock is taken below lockdep and spinlock debugging: they would rightly
 * complain about a CPU that takes it twice, and without SMP that is what a tick
 * which does not care for the holder does. Nor can a trylock fail there without
 * a complaint, so debugging is kept quiet while the lock is held.
 */
static void tick_test_hold_lock(void)
{
	if (!IS_ENABLED(CONFIG_SMP)) {
		tick_test_debug_locks = debug_locks;
		tick_test_debug_locks_silent = debug_locks_silent;
		debug_locks_silent = 1;
	}
	arch_spin_lock(&jiffies_lock.raw_lock);
}

static void tick_test_drop_lock(void)
{
	arch_spin_unlock(&jiffies_lock.raw_lock);
	if (!IS_ENABLED(CONFIG_SMP)) {
		debug_locks_silent = tick_test_debug_locks_silent;
		debug_locks = tick_test_debug_locks;
	}
}

static void tick_test_do_tick(struct tick_test *t)
{
	tick_sched_do_timer(&this_cpu_ptr(t->cpus)->ts, t->now);
}

static void tick_test_tell(struct tick_test *t, int cpu)
{
	/* The CPU sees its order after all that the order is about: tick_test_follow() */
	smp_store_release(&per_cpu_ptr(t->cpus, cpu)->step, TICK_TEST_TOLD);
}

static void tick_test_count(struct tick_test *t, int nr[TICK_TEST_NR_STEPS])
{
	int cpu;

	memset(nr, 0, TICK_TEST_NR_STEPS * sizeof(*nr));
	for_each_online_cpu(cpu) {
		/* Who sees a tick done sees what it did: tick_test_follow() */
		nr[smp_load_acquire(&per_cpu_ptr(t->cpus, cpu)->step)]++;
	}
}

/* Nothing but a panic gets a CPU out of stop_machine() that does not come back */
static void tick_test_turn(unsigned int *turns)
{
	if (++*turns > TEST_TURNS_LOST)
		panic("tick_sched test: a CPU does not finish its tick\n");
	touch_nmi_watchdog();
	udelay(TEST_TURN_US);
}

/*
 * Do the @nr CPUs which are in a tick wait for the lock, now that none of them has
 * come out for so many turns? If it is but one, who is seen at the lock is that one.
 */
static bool tick_test_all_wait(int nr, unsigned int turns)
{
	if (!raw_spin_is_contended(&jiffies_lock))
		return turns >= TEST_TURNS_SILENT;
	return nr == 1 || turns >= TEST_TURNS_CONTENDED;
}

/*
 * Wait until all CPUs did their tick or, if the lock is @held, until those which
 * are left wait for it. A CPU that has not begun is waited for: only the host can
 * be the reason. Returns how many are left.
 */
static int tick_test_wait(struct tick_test *t, bool held)
{
	int nr[TICK_TEST_NR_STEPS], told = 0, begun = 0;
	unsigned int turns = 0;

	tick_test_count(t, nr);
	while (nr[TICK_TEST_TOLD] || nr[TICK_TEST_BEGUN]) {
		if (nr[TICK_TEST_TOLD] || nr[TICK_TEST_BEGUN] != begun || told)
			turns = 0;
		told = nr[TICK_TEST_TOLD];
		begun = nr[TICK_TEST_BEGUN];
		if (held && !told && tick_test_all_wait(begun, turns))
			break;
		tick_test_turn(&turns);
		tick_test_count(t, nr);
	}
	return nr[TICK_TEST_BEGUN];
}

static void tick_test_look(struct tick_test *t, struct tick_test_seen *seen)
{
	struct tick_sched *ts = &per_cpu_ptr(t->cpus, t->ticker)->ts;

	seen->stalled = ts->stalled_jiffies;
	seen->not_noted = jiffies - ts->last_tick_jiffies;
	seen->ticks = jiffies_64 - t->jiffies;
	seen->next_period = ktime_sub(tick_next_period, t->next_period);
	seen->sequence = raw_read_seqcount(&jiffies_seq) - t->sequence;
	seen->tick_cpu = tick_do_timer_cpu;
}

static void tick_test_tick_free(struct tick_test *t)
{
	if (t->ticker == t->director)
		tick_test_do_tick(t);
	else
		tick_test_tell(t, t->ticker);
	tick_test_wait(t, false);
	tick_test_look(t, &t->seen[t->nr_seen++]);
}

/* One tick on the ticker with the lock held, until the tick is done or waits */
static void tick_test_tick_held(struct tick_test *t)
{
	struct tick_test_seen *seen = &t->seen[t->nr_seen++];
	u64 was = jiffies_64;

	tick_test_hold_lock();
	if (t->ticker == t->director)
		tick_test_do_tick(t);
	else
		tick_test_tell(t, t->ticker);
	seen->waited = tick_test_wait(t, true);
	t->nr_waiters += seen->waited;
	t->ticks_held += jiffies_64 - was;
	tick_test_drop_lock();

	tick_test_wait(t, false);
	tick_test_look(t, seen);
}

/* As if @cpu had seen @ticks ticks without a change of jiffies */
static void tick_test_stall(struct tick_test *t, int cpu, unsigned int ticks)
{
	struct tick_sched *ts = &per_cpu_ptr(t->cpus, cpu)->ts;

	ts->last_tick_jiffies = jiffies;
	ts->stalled_jiffies = ticks;
}

/* All CPUs but the director tick at once while the lock is held */
static void tick_test_all_tick_held(struct tick_test *t)
{
	int nr[TICK_TEST_NR_STEPS];
	int cpu;

	for_each_online_cpu(cpu)
		tick_test_stall(t, cpu, TEST_STALLED_TICKS - 1);

	tick_test_hold_lock();
	for_each_online_cpu(cpu) {
		if (cpu != t->director)
			tick_test_tell(t, cpu);
	}
	t->nr_waiters = tick_test_wait(t, true);
	tick_test_drop_lock();

	tick_test_wait(t, false);
	tick_test_count(t, nr);
	t->nr_ticked = nr[TICK_TEST_DONE];
}

/* The other CPUs do as they are told until the director finished */
static void tick_test_follow(struct tick_test *t)
{
	enum tick_test_step *step = &this_cpu_ptr(t->cpus)->step;

	/* Pairs with the release when the director finished in tick_test_on_cpu() */
	while (!smp_load_acquire(&t->finished)) {
		/* Pairs with the release in tick_test_tell() */
		if (smp_load_acquire(step) == TICK_TEST_TOLD) {
			WRITE_ONCE(*step, TICK_TEST_BEGUN);
			tick_test_do_tick(t);
			/* Pairs with the acquire in tick_test_count() */
			smp_store_release(step, TICK_TEST_DONE);
		}
		touch_nmi_watchdog();
		cpu_relax();
	}
}

static void tick_test_save(struct tick_test *t)
{
	t->jiffies = jiffies_64;
	t->next_period = tick_next_period;
	t->last_update = last_jiffies_update;
	t->sequence = raw_read_seqcount(&jiffies_seq);
	t->tick_cpu = tick_do_timer_cpu;
}

static void tick_test_restore(struct tick_test *t)
{
	raw_spin_lock(&jiffies_lock);
	write_seqcount_begin(&jiffies_seq);
	jiffies_64 = t->jiffies;
	tick_next_period = t->next_period;
	last_jiffies_update = t->last_update;
	write_seqcount_end(&jiffies_seq);
	raw_spin_unlock(&jiffies_lock);
	WRITE_ONCE(tick_do_timer_cpu, t->tick_cpu);
}

static int tick_test_on_cpu(void *data)
{
	struct tick_test *t = data;

	if (smp_processor_id() != t->director) {
		tick_test_follow(t);
		return 0;
	}

	tick_test_save(t);
	/* Before the switch to one-shot mode this one is not maintained */
	last_jiffies_update = ktime_sub_ns(tick_next_period, TICK_NSEC);
	/* A CPU which does not exist: none of those that tick is the timekeeper */
	WRITE_ONCE(tick_do_timer_cpu, nr_cpu_ids);
	/* One update is due */
	t->now = tick_next_period;

	t->play(t);

	/* No tick is left which could undo this */
	tick_test_restore(t);
	/* Nobody leaves before everything is as it was */
	smp_store_release(&t->finished, true);
	return 0;
}

static int tick_test_run(struct tick_test *t, void (*play)(struct tick_test *t))
{
	int ret;

	t->cpus = alloc_percpu(struct tick_test_cpu);
	if (!t->cpus)
		return -ENOMEM;

	cpus_read_lock();
	t->play = play;
	t->director = cpumask_first(cpu_online_mask);
	t->ticker = cpumask_last(cpu_online_mask);
	ret = stop_machine_cpuslocked(tick_test_on_cpu, t, cpu_online_mask);
	cpus_read_unlock();

	free_percpu(t->cpus);
	return ret;
}

/* The test goes through its ticks, and looks afterwards at what they left */
static const struct tick_test_seen *tick_test_play(struct kunit *test,
						   void (*play)(struct tick_test *t))
{
	struct tick_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, tick_test_run(t, play), 0);
	return t->seen;
}

/* The lock can be held such that a tick notices, and a tick that waits goes on */
static void tick_test_needs_held_lock(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_SMP) ? num_online_cpus() < 2 : !IS_ENABLED(CONFIG_DEBUG_SPINLOCK))
		kunit_skip(test, "needs two CPUs, or DEBUG_SPINLOCK without SMP");
}

static void tick_test_needs_cpus(struct kunit *test, int nr)
{
	if (num_online_cpus() < nr)
		kunit_skip(test, "needs %d CPUs", nr);
}

/* What was measured goes to the log, whatever is then asserted of it */
static void tick_test_figure(struct kunit *test, const char *name, s64 value)
{
	kunit_info(test, "%s=%lld", name, value);
}

static void tick_test_held_figures(struct kunit *test)
{
	struct tick_test *t = test->priv;

	tick_test_figure(test, "waited", t->nr_waiters);
	tick_test_figure(test, "ticks", t->ticks_held);
}

static void tick_test_not_updated(struct kunit *test, const struct tick_test_seen *seen)
{
	KUNIT_EXPECT_EQ(test, seen->ticks, 0);
	KUNIT_EXPECT_EQ(test, seen->next_period, 0);
	KUNIT_EXPECT_EQ(test, seen->sequence, 0);
}

static void tick_test_updated(struct kunit *test, const struct tick_test_seen *seen, u64 ticks)
{
	KUNIT_EXPECT_EQ(test, seen->ticks, ticks);
	KUNIT_EXPECT_EQ(test, seen->next_period, ticks * TICK_NSEC);
	/* Odd while the update is going on, even again afterwards */
	KUNIT_EXPECT_EQ(test, seen->sequence, 2);
}

static void play_moving_jiffies(struct tick_test *t)
{
	tick_test_stall(t, t->ticker, TEST_STALLED_TICKS - 1);
	jiffies_64++;
	tick_test_tick_free(t);
}

static void moving_jiffies_reset_count(struct kunit *test)
{
	const struct tick_test_seen *seen = tick_test_play(test, play_moving_jiffies);

	KUNIT_EXPECT_EQ(test, seen->stalled, 0);
	KUNIT_EXPECT_EQ(test, seen->not_noted, 0);
	KUNIT_EXPECT_EQ(test, seen->ticks, 1);
	KUNIT_EXPECT_EQ(test, seen->sequence, 0);
}

static void play_stall(struct tick_test *t)
{
	int i;

	tick_test_stall(t, t->ticker, 0);
	for (i = 0; i < TEST_STALLED_TICKS; i++)
		tick_test_tick_free(t);
}

static void fifth_stalled_tick_updates(struct kunit *test)
{
	const struct tick_test_seen *seen = tick_test_play(test, play_stall);
	int i;

	for (i = 0; i < TEST_STALLED_TICKS - 1; i++) {
		KUNIT_EXPECT_EQ(test, seen[i].stalled, i + 1);
		tick_test_not_updated(test, &seen[i]);
	}
	tick_test_updated(test, &seen[i], 1);
	KUNIT_EXPECT_EQ(test, seen[i].stalled, 0);
	KUNIT_EXPECT_EQ(test, seen[i].not_noted, 0);
}

static void play_held_lock(struct tick_test *t)
{
	tick_test_stall(t, t->ticker, TEST_STALLED_TICKS - 1);
	tick_test_tick_held(t);
}

static void held_lock_returns(struct kunit *test)
{
	const struct tick_test_seen *seen;

	tick_test_needs_held_lock(test);

	seen = tick_test_play(test, play_held_lock);
	tick_test_held_figures(test);
	KUNIT_EXPECT_FALSE(test, seen->waited);
	tick_test_not_updated(test, seen);
	KUNIT_EXPECT_EQ(test, seen->stalled, TEST_STALLED_TICKS);
	KUNIT_EXPECT_EQ(test, seen->not_noted, 0);
}

#define TEST_RETRIES	3

static void play_held_lock_retries(struct tick_test *t)
{
	int i;

	tick_test_stall(t, t->ticker, TEST_STALLED_TICKS - 1);
	for (i = 0; i < TEST_RETRIES; i++)
		tick_test_tick_held(t);
	tick_test_tick_free(t);
}

static void held_lock_retries(struct kunit *test)
{
	const struct tick_test_seen *seen;
	int retries = 0;
	int i;

	tick_test_needs_held_lock(test);

	seen = tick_test_play(test, play_held_lock_retries);
	/* With a count that is kept the next tick tries again */
	for (i = 0; i < TEST_RETRIES; i++)
		retries += seen[i].stalled >= TEST_STALLED_TICKS;
	tick_test_held_figures(test);
	tick_test_figure(test, "retries", retries);
	for (i = 0; i < TEST_RETRIES; i++) {
		KUNIT_EXPECT_FALSE(test, seen[i].waited);
		tick_test_not_updated(test, &seen[i]);
		KUNIT_EXPECT_EQ(test, seen[i].stalled, TEST_STALLED_TICKS + i);
	}
	tick_test_updated(test, &seen[i], 1);
	KUNIT_EXPECT_EQ(test, seen[i].stalled, 0);
	KUNIT_EXPECT_EQ(test, seen[i].not_noted, 0);
}

static int tick_test_play_all(struct kunit *test)
{
	struct tick_test *t = test->priv;

	tick_test_play(test, tick_test_all_tick_held);
	tick_test_figure(test, "cpus", t->nr_ticked);
	tick_test_figure(test, "waiters", t->nr_waiters);
	return t->nr_waiters;
}

static void all_cpus_return(struct kunit *test)
{
	tick_test_needs_cpus(test, 2);

	KUNIT_EXPECT_EQ(test, tick_test_play_all(test), 0);
}

/* What is left to a kernel that lets one CPU at a time stand in for the timekeeper */
static void at_most_one_cpu_waits(struct kunit *test)
{
	/* With two there is but one which could wait */
	tick_test_needs_cpus(test, 3);

	KUNIT_EXPECT_LE(test, tick_test_play_all(test), 1);
}

static void play_not_due(struct tick_test *t)
{
	tick_test_stall(t, t->ticker, TEST_STALLED_TICKS - 1);
	t->now = ktime_sub_ns(tick_next_period, 1);
	tick_test_tick_held(t);
}

static void not_due_does_not_touch_lock(struct kunit *test)
{
	const struct tick_test_seen *seen;

	tick_test_needs_held_lock(test);

	seen = tick_test_play(test, play_not_due);
	KUNIT_EXPECT_FALSE(test, seen->waited);
	tick_test_not_updated(test, seen);
	KUNIT_EXPECT_EQ(test, seen->stalled, 0);
	KUNIT_EXPECT_EQ(test, seen->not_noted, 0);
}

static void play_timekeeper(struct tick_test *t)
{
	WRITE_ONCE(tick_do_timer_cpu, t->ticker);
	tick_test_tick_free(t);
}

static void timekeeper_updates_at_once(struct kunit *test)
{
	const struct tick_test_seen *seen = tick_test_play(test, play_timekeeper);

	tick_test_updated(test, seen, 1);
	KUNIT_EXPECT_EQ(test, seen->stalled, 0);
	KUNIT_EXPECT_EQ(test, seen->not_noted, 0);
}

static void play_timekeeper_held(struct tick_test *t)
{
	WRITE_ONCE(tick_do_timer_cpu, t->ticker);
	tick_test_tick_held(t);
}

static void timekeeper_waits_for_lock(struct kunit *test)
{
	const struct tick_test_seen *seen;

	tick_test_needs_cpus(test, 2);

	seen = tick_test_play(test, play_timekeeper_held);
	KUNIT_EXPECT_TRUE(test, seen->waited);
	tick_test_updated(test, seen, 1);
}

/* The timekeeper queues, and the holder does the update before it lets it go on */
static void play_update_before_waiter(struct tick_test *t)
{
	WRITE_ONCE(tick_do_timer_cpu, t->ticker);
	tick_test_hold_lock();
	tick_test_tell(t, t->ticker);
	t->seen->waited = tick_test_wait(t, true);

	/* Raw, since lockdep does not know that the lock is held */
	raw_write_seqcount_begin(&jiffies_seq);
	jiffies_64++;
	last_jiffies_update = tick_next_period;
	tick_next_period = ktime_add_ns(tick_next_period, TICK_NSEC);
	raw_write_seqcount_end(&jiffies_seq);

	tick_test_drop_lock();
	tick_test_wait(t, false);
	tick_test_look(t, t->seen);
}

static void waiter_finds_update_done(struct kunit *test)
{
	const struct tick_test_seen *seen;

	tick_test_needs_cpus(test, 2);

	seen = tick_test_play(test, play_update_before_waiter);
	KUNIT_EXPECT_TRUE(test, seen->waited);
	tick_test_updated(test, seen, 1);
}

static void play_no_timekeeper(struct tick_test *t)
{
	WRITE_ONCE(tick_do_timer_cpu, TICK_DO_TIMER_NONE);
	tick_test_tick_free(t);
}

static void dropped_duty_is_taken_over(struct kunit *test)
{
	struct tick_test *t = test->priv;
	const struct tick_test_seen *seen;

	if (!IS_ENABLED(CONFIG_NO_HZ_COMMON) || tick_nohz_full_enabled())
		kunit_skip(test, "the duty is never dropped");

	seen = tick_test_play(test, play_no_timekeeper);
	KUNIT_EXPECT_EQ(test, seen->tick_cpu, t->ticker);
	tick_test_updated(test, seen, 1);
}

#define TEST_CATCH_UP	7

static void play_catch_up(struct tick_test *t)
{
	tick_test_stall(t, t->ticker, TEST_STALLED_TICKS - 1);
	t->now = ktime_add_ns(tick_next_period, TEST_CATCH_UP * TICK_NSEC - 1);
	tick_test_tick_free(t);
	/* All of it is done, nothing is left to do for another CPU */
	tick_test_stall(t, t->ticker, TEST_STALLED_TICKS - 1);
	tick_test_tick_free(t);
}

static void late_update_catches_up(struct kunit *test)
{
	const struct tick_test_seen *seen = tick_test_play(test, play_catch_up);

	tick_test_updated(test, &seen[0], TEST_CATCH_UP);
	tick_test_updated(test, &seen[1], TEST_CATCH_UP);
}

/*
 * The zero of the clock that jiffies follow, as their last update has it: every
 * update moves both, whenever it comes.
 */
static s64 tick_test_offset(void)
{
	s64 offset;

	raw_spin_lock_irq(&jiffies_lock);
	offset = ktime_to_ns(last_jiffies_update) - jiffies_64 * TICK_NSEC;
	raw_spin_unlock_irq(&jiffies_lock);
	return offset;
}

/* How far the clock is ahead of jiffies, which looks like more if the reading is late */
static s64 tick_test_lag(s64 offset)
{
	s64 updated = get_jiffies_64() * TICK_NSEC + offset;

	return ktime_get_ns() - updated;
}

static bool tick_test_all_oneshot(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (tick_get_device(cpu)->mode != TICKDEV_MODE_ONESHOT)
			return false;
	}
	return true;
}

/* The last case: jiffies still go with the clock as they did before the first */
static void jiffies_agree_with_ktime(struct kunit *test)
{
	s64 offset = tick_test_offset();
	s64 lag = tick_test_lag(offset);
	int i;

	if (!tick_test_start_oneshot)
		kunit_skip(test, "ticks are periodic, and those which are missed stay lost");

	KUNIT_EXPECT_EQ(test, offset, tick_test_start_offset);

	/* One that nothing made late is enough */
	for (i = 0; i < TEST_READINGS && lag > 2 * TICK_NSEC; i++) {
		fsleep(USEC_PER_MSEC);
		lag = tick_test_lag(offset);
	}
	KUNIT_EXPECT_LE(test, lag, 2 * TICK_NSEC);
	KUNIT_EXPECT_GE(test, lag, -2 * TICK_NSEC);
}

static int tick_test_suite_init(struct kunit_suite *suite)
{
	int ms;

	/* At boot it can take a second until a clocksource allows for it */
	for (ms = 0; ms < TEST_ONESHOT_MS && !tick_test_all_oneshot(); ms++)
		fsleep(USEC_PER_MSEC);
	tick_test_start_oneshot = tick_test_all_oneshot();
	tick_test_start_offset = tick_test_offset();
	return 0;
}

static int tick_test_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct tick_test), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static struct kunit_case tick_sched_test_cases[] = {
	KUNIT_CASE(moving_jiffies_reset_count),
	KUNIT_CASE(fifth_stalled_tick_updates),
	KUNIT_CASE(held_lock_returns),
	KUNIT_CASE(held_lock_retries),
	KUNIT_CASE(all_cpus_return),
	KUNIT_CASE(at_most_one_cpu_waits),
	KUNIT_CASE(not_due_does_not_touch_lock),
	KUNIT_CASE(timekeeper_updates_at_once),
	KUNIT_CASE(timekeeper_waits_for_lock),
	KUNIT_CASE(waiter_finds_update_done),
	KUNIT_CASE(dropped_duty_is_taken_over),
	KUNIT_CASE(late_update_catches_up),
	KUNIT_CASE(jiffies_agree_with_ktime),
	{}
};

static struct kunit_suite tick_sched_test_suite = {
	.name		= "tick_sched",
	.suite_init	= tick_test_suite_init,
	.init		= tick_test_init,
	.test_cases	= tick_sched_test_cases,
};

kunit_test_suite(tick_sched_test_suite);
