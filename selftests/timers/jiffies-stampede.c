// SPDX-License-Identifier: GPL-2.0
/*
 * Nobody but the timekeeper waits for jiffies_lock.
 *
 * When the CPU in charge of jiffies is late, the others notice on their tick
 * and do the update themselves. All of them notice on the same tick. Unless
 * they only try the lock, they all queue for it with interrupts disabled, and
 * on a machine with thousands of CPUs that is where they stay.
 *
 * To see it, every CPU gets a busy thread, so that it has a tick, and the
 * module test_lockup holds jiffies_lock on one CPU for a second. The event
 * lock:contention_begin tells who has to queue. It does not tell about the
 * first in the queue of a qspinlock, who spins on the lock word itself: that
 * one is seen in the lock word, which /proc/kcore shows, and taken for the
 * timekeeper only if the timekeeper was not in the queue at the same time.
 *
 * What is demanded does not depend on how the kernel does it. A kernel which
 * lets one CPU at a time through to the lock fails the first case, which has
 * nobody wait, and passes the second.
 *
 * The machine may be a virtual one which is slow, or stands still for seconds
 * while its clocks go on. So no result here goes by the clock: what counts is
 * the ticks that a CPU had. A hold in which the CPU that looks on had too few
 * of them to notice anything proves nothing, and is repeated; after a few of
 * those in a row the test fails, as it could not do its work.
 *
 * This disturbs the whole machine for some seconds, and loading test_lockup
 * with an address taints the kernel: a destructive test.
 *
 * Environment:
 *   TEST_LOCKUP=FILE              where test_lockup.ko is, if not with the
 *                                 modules of the running kernel
 *   JIFFIES_STAMPEDE_SECONDS=N    how long the lock is held, 1 if not given
 *   JIFFIES_STAMPEDE_TIMELINE=1   also print the number of waiting CPUs over
 *                                 time, "# timeline=MICROSECONDS WAITING"
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/elf.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/utsname.h>

#include "../kselftest_harness.h"
#include "../ftrace/trace_instance.h"

#ifdef __has_builtin
#define HAVE_PAUSE		__has_builtin(__builtin_ia32_pause)
#else
#define HAVE_PAUSE		0
#endif

#define NSEC_PER_SEC		1000000000LL
#define NSEC_PER_USEC		1000LL
#define MAX_STALLED_JIFFIES	5	/* as in kernel/time/tick-sched.c */
#define FEW_TICKS		3
#define MIN_CPUS		4	/* timekeeper, holder, watcher, and one */
#define MAX_SEGMENTS		128
#define MAX_STAMPS		1024	/* even */
#define STACK_SIZE		(128 * 1024)
#define WATCHER_KB		"1024"	/* of trace: some minutes of ticks */

/*
 * Ticks of a CPU until jiffies are right again. It does the update itself if
 * the timekeeper does not, and does so twice if it is a stale one that the
 * timekeeper does first.
 */
#define CATCH_UP_TICKS		(2 * MAX_STALLED_JIFFIES + FEW_TICKS)

/* Bounds, for a machine that is slow, and stopped now and then. */
#define MAX_TRIES		5	/* until one proves something */
#define PATIENCE_UPDATES	200	/* of the coarse clock, */
#define PATIENCE_NS		(60 * NSEC_PER_SEC)	/* if it has any */
#define CASE_SECONDS		1800

#if __BITS_PER_LONG == 64
#define elf_hdr			elf64_hdr
#define elf_phdr		elf64_phdr
#else
#define elf_hdr			elf32_hdr
#define elf_phdr		elf32_phdr
#endif

/* The lock word of a qspinlock, include/asm-generic/qspinlock_types.h */
#define Q_LOCKED		0x000000ffU
#define Q_PENDING		0x00000100U

enum cpu_role { NOT_WAITING, TIMEKEEPER, IDLE_EXIT, OTHER, NR_ROLES };

/* What the watching CPU's ticks fall into, told apart by marks in the trace. */
enum phase { BEFORE, HELD, CATCHING_UP, AFTER, NR_PHASES };

/* One CPU: its busy thread, and what a hold of the lock did to it. */
struct cpu {
	pthread_t thread;
	int id;
	bool busy;		/* it has a thread, none if we must not run on it */
	int *stop;
	int running;		/* the thread has come to its loop */

	enum cpu_role role;
	long long since;		/* waiting since, 0: not waiting */
};

enum event_kind { TICK, WAIT_BEGIN, WAIT_END, MARK };

struct event {
	long long when;		/* in ns, or in jiffies with that clock */
	int cpu;
	int pid;
	enum event_kind kind;
	int phase;		/* of a mark, which begins it */
};

struct segment {		/* of kernel memory, in /proc/kcore */
	unsigned long start;
	unsigned long end;
	off_t offset;
};

struct stampede {
	char skip[256];		/* why it cannot run here */
	struct trace_instance ti;
	struct trace_guard guard;

	struct cpu *cpus;
	int nr_cpus;
	int nr_busy;
	int stop;

	int kcore;
	struct segment segments[MAX_SEGMENTS];
	int nr_segments;
	unsigned long jiffies_lock;
	unsigned long tick_do_timer_cpu;
	unsigned long virt_spin_lock_key;
	unsigned long tick_handler;
	bool queued;		/* spinlocks are qspinlocks */

	int module;
	int module_flags;
	int seconds;
	long long tick_ns;
	long long clk_ns;		/* one step of times() */
};

/* Looks at the lock word which all saw the lock held, without one between. */
struct held {
	int looks;
	long long since, last;		/* first and last of them */
	int pending_looks;	/* that saw somebody spin on the lock word, */
	long long stamps[MAX_STAMPS];	/* when every @stride of them was */
	int nr_stamps;
	int stride;
};

struct looks {
	struct held now;
	struct held longest;		/* in looks */
	long long worst_lag_ns;	/* of the coarse clock */
};

/* What holds the lock, or only disables interrupts, in a thread of its own. */
struct holder {
	struct stampede *s;
	pthread_t thread;
	int cpu;
	int watcher;		/* the CPU that looks on */
	bool lock;
	int go;
	int done;
	pid_t tid;
	int error;		/* of finit_module() */
	long long end;
	bool in_step;		/* jiffies were right again, so long after it */
	long long catch_up_ns;
	struct looks looks;
};

struct hold {
	int timekeeper;
	struct holder holder;
	long long released;
	struct event *events;	/* who waits */
	int nr_events;
	int ticks[NR_PHASES];	/* of the watcher */

	int waiters[NR_ROLES];	/* CPUs */
	int unseen;		/* of the others, spinning on the lock word */
	struct cpu stranger;	/* an unseen one, or one that has come online */
	int others;		/* that wait now, */
	int other_at_once;	/* and the most at one time */
	long long longest_ns, total_ns;
};

/* How long to wait for something that may never come. */
struct patience {
	long long start;
	long long coarse;
	int updates;
};

static long long clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static long long now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Under emulation this also gives the host CPU to the next virtual one. */
static void relax(void)
{
#if HAVE_PAUSE
	__builtin_ia32_pause();
#endif
}

/* jiffies, from their own count: times() is nothing else in USER_HZ. */
static long long jiffies_ns(struct stampede *s)
{
	struct tms unused;

	return (long long)times(&unused) * s->clk_ns;
}

static bool pin_attr(pthread_attr_t *attr, int cpu)
{
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	int err;

	if (!set)
		return false;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	err = pthread_attr_setaffinity_np(attr, size, set);
	CPU_FREE(set);
	return !err;
}

static bool pin_self(int cpu)
{
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	int err;

	if (!set)
		return false;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	err = sched_setaffinity(0, size, set);
	CPU_FREE(set);
	return !err;
}

static bool start_on(pthread_t *thread, int cpu, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	bool ok;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	ok = pin_attr(&attr, cpu) && !pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return ok;
}

/* Keeps a CPU out of idle. */
static void *busy_thread(void *arg)
{
	struct cpu *cpu = arg;

	__atomic_store_n(&cpu->running, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(cpu->stop, __ATOMIC_ACQUIRE))
		relax();
	return NULL;
}

static struct cpu *find_cpu(struct stampede *s, int id)
{
	int i;

	for (i = 0; i < s->nr_cpus; i++)
		if (s->cpus[i].id == id)
			return &s->cpus[i];
	return NULL;
}

/* One for each online CPU that we may run on. Returns false if it went wrong. */
static bool start_busy_threads(struct stampede *s)
{
	char list[4096];
	char *rest = list;
	char *range;
	int first, last, found, id, max = 0;

	if (trace_read(list, sizeof(list), "/sys/devices/system/cpu/online"))
		return false;
	while ((range = strsep(&rest, ","))) {
		found = sscanf(range, "%d-%d", &first, &last);
		if (found < 1)
			return false;
		if (found < 2)
			last = first;
		if (s->nr_cpus + last - first + 1 > max) {
			max = 2 * (s->nr_cpus + last - first + 1);
			s->cpus = realloc(s->cpus, max * sizeof(*s->cpus));
			if (!s->cpus)
				return false;
		}
		for (id = first; id <= last; id++)
			s->cpus[s->nr_cpus++] = (struct cpu){
				.id = id,
				.stop = &s->stop,
			};
	}
	for (id = 0; id < s->nr_cpus; id++) {
		struct cpu *cpu = &s->cpus[id];

		cpu->busy = start_on(&cpu->thread, cpu->id, busy_thread, cpu);
		s->nr_busy += cpu->busy;
	}
	for (id = 0; id < s->nr_cpus; id++)
		while (s->cpus[id].busy &&
		       !__atomic_load_n(&s->cpus[id].running, __ATOMIC_ACQUIRE))
			relax();
	return true;
}

static void stop_busy_threads(struct stampede *s)
{
	int i;

	__atomic_store_n(&s->stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < s->nr_cpus; i++)
		if (s->cpus[i].busy)
			pthread_join(s->cpus[i].thread, NULL);
	free(s->cpus);
	s->cpus = NULL;
	s->nr_cpus = 0;
	s->nr_busy = 0;
}

/* Learns where in /proc/kcore each piece of kernel memory is. */
static bool open_kcore(struct stampede *s)
{
	struct elf_hdr ehdr;
	struct elf_phdr phdr;
	int i;

	s->kcore = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	if (s->kcore < 0)
		return false;
	if (pread(s->kcore, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) ||
	    ehdr.e_phentsize != sizeof(phdr)) {
		errno = ENOEXEC;
		return false;
	}
	for (i = 0; i < ehdr.e_phnum && s->nr_segments < MAX_SEGMENTS; i++) {
		if (pread(s->kcore, &phdr, sizeof(phdr),
			  ehdr.e_phoff + i * sizeof(phdr)) != sizeof(phdr))
			return false;
		if (phdr.p_type != PT_LOAD)
			continue;
		s->segments[s->nr_segments++] = (struct segment){
			.start = phdr.p_vaddr,
			.end = phdr.p_vaddr + phdr.p_memsz,
			.offset = phdr.p_offset,
		};
	}
	return true;
}

/* Reads a 32-bit variable of the running kernel. */
static bool peek(struct stampede *s, unsigned long addr,
		 unsigned int *value)
{
	const struct segment *seg = s->segments;
	const struct segment *end = seg + s->nr_segments;

	for (; seg < end; seg++)
		if (addr >= seg->start && addr + sizeof(*value) <= seg->end)
			return pread(s->kcore, value, sizeof(*value),
				     seg->offset + (addr - seg->start)) ==
			       sizeof(*value);
	return false;
}

/* Which CPU has the duty, -1 if none. */
static int timekeeper(struct stampede *s)
{
	unsigned int cpu;

	return peek(s, s->tick_do_timer_cpu, &cpu) ? (int)cpu : -1;
}

static bool read_symbols(struct stampede *s)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long addr, old_tick_handler = 0;
	char line[512], name[256];

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (strchr(line, '[') ||	/* in a module */
		    sscanf(line, "%lx %*c %255s", &addr, name) != 2)
			continue;
		if (!strcmp(name, "jiffies_lock"))
			s->jiffies_lock = addr;
		else if (!strcmp(name, "tick_do_timer_cpu"))
			s->tick_do_timer_cpu = addr;
		else if (!strcmp(name, "virt_spin_lock_key"))
			s->virt_spin_lock_key = addr;
		else if (!strcmp(name, "tick_sched_timer"))
			old_tick_handler = addr;
		else if (!strcmp(name, "tick_nohz_handler"))
			s->tick_handler = addr;
		else if (strstr(name, "queued_spin_lock_slowpath"))
			s->queued = true;
	}
	/* Before 6.8, where the other one is there as well, but no hrtimer's */
	if (old_tick_handler)
		s->tick_handler = old_tick_handler;
	fclose(f);
	return true;
}

static bool open_module(struct stampede *s)
{
	static const char * const suffix[] = { "", ".xz", ".zst", ".gz", NULL };
	const char *path = getenv("TEST_LOCKUP");
	char name[256];
	struct utsname uts;
	int i;

	if (path) {
		s->module = open(path, O_RDONLY | O_CLOEXEC);
		return s->module >= 0;
	}
	uname(&uts);
	for (i = 0; suffix[i]; i++) {
		snprintf(name, sizeof(name),
			 "/lib/modules/%s/kernel/lib/test_lockup.ko%s",
			 uts.release, suffix[i]);
		s->module = open(name, O_RDONLY | O_CLOEXEC);
		if (s->module >= 0) {
			/* MODULE_INIT_COMPRESSED_FILE */
			s->module_flags = suffix[i][0] ? 4 : 0;
			return true;
		}
	}
	return false;
}

/* Returns 0, or the negative error. The module never stays: it ends with EAGAIN. */
static int run_module(struct stampede *s, const char *params)
{
	if (!syscall(SYS_finit_module, s->module, params,
		     s->module_flags))
		return -EEXIST;	/* it has no business to stay */
	return errno == EAGAIN ? 0 : -errno;
}

/* Sets the reason for which nothing can be tested here. */
static void cannot(struct stampede *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->skip, sizeof(s->skip), fmt, ap);
	va_end(ap);
}

static void check_kernel(struct stampede *s)
{
	struct timespec res;
	char value[64];
	unsigned int key;

	if (geteuid())
		return cannot(s, "needs root");
	/* Without them the tick is no hrtimer's, and not seen in the trace. */
	if (clock_getres(CLOCK_MONOTONIC, &res) || res.tv_nsec != 1)
		return cannot(s, "no high resolution timers");
	if (!trace_read(value, sizeof(value), "/sys/kernel/realtime") &&
	    value[0] == '1')
		return cannot(s, "test_lockup cannot take a raw lock on PREEMPT_RT");
	if (!trace_read(value, sizeof(value),
			"/sys/devices/system/cpu/nohz_full") &&
	    value[0] >= '0' && value[0] <= '9')
		return cannot(s, "nohz_full CPUs have no tick when busy");
	if (!read_symbols(s) || !s->jiffies_lock)
		return cannot(s, "no address of jiffies_lock in /proc/kallsyms");
	if (!s->tick_do_timer_cpu)
		return cannot(s, "no address of tick_do_timer_cpu in /proc/kallsyms");
	if (!s->tick_handler)
		return cannot(s, "no address of the tick's handler in /proc/kallsyms");
	if (!s->queued)
		return cannot(s, "no queued spinlocks, the others have no contention event");
	if (!open_kcore(s))
		return cannot(s, "/proc/kcore: %s", strerror(errno));
	if (!peek(s, s->jiffies_lock, &key))
		return cannot(s, "/proc/kcore does not show jiffies_lock");
	if (s->virt_spin_lock_key &&
	    (!peek(s, s->virt_spin_lock_key, &key) || key))
		return cannot(s, "the paravirt test-and-set lock has no contention event");
	if (!trace_find(&s->ti))
		return cannot(s, "no tracefs");
	if (!open_module(s))
		return cannot(s, "no test_lockup.ko (TEST_LOCKUP=m): %s",
			      strerror(errno));
}

static void undo(void *data)
{
	trace_instance_undo(data);
}

/* Has an instance's event enabled for what @filter lets through. */
static bool enable_event(struct stampede *s, const char *event,
			 const char *filter)
{
	return !trace_write(filter, "%s/events/%s/filter", s->ti.dir, event) &&
	       !trace_write("1", "%s/events/%s/enable", s->ti.dir, event);
}

/* The ticks of one CPU: there is more to it than time where that is short. */
static bool watch_ticks(struct stampede *s, int cpu)
{
	char filter[96];

	snprintf(filter, sizeof(filter), "function == 0x%lx && CPU == %d",
		 s->tick_handler, cpu);
	return enable_event(s, "timer/hrtimer_expire_entry", filter) &&
	       !trace_write(WATCHER_KB, "%s/per_cpu/cpu%d/buffer_size_kb",
			    s->ti.dir, cpu);
}

static bool setup_tracing(struct stampede *s)
{
	const char *dir = s->ti.dir;
	char filter[64];

	snprintf(filter, sizeof(filter), "lock_addr == 0x%lx",
		 s->jiffies_lock);
	return !mkdir(dir, 0755) &&
	       !trace_write("0", "%s/tracing_on", dir) &&
	       !trace_write("mono", "%s/trace_clock", dir) &&
	       !trace_write("1", "%s/options/context-info", dir) &&
	       !trace_write("1", "%s/options/markers", dir) &&
	       !trace_write("1", "%s/options/irq-info", dir) &&
	       !trace_write("0", "%s/options/latency-format", dir) &&
	       !trace_write("0", "%s/options/raw", dir) &&
	       !trace_write("0", "%s/options/hex", dir) &&
	       !trace_write("0", "%s/options/bin", dir) &&
	       enable_event(s, "lock/contention_begin", filter) &&
	       enable_event(s, "lock/contention_end", filter);
}

FIXTURE(stampede)
{
	struct stampede s;
};

FIXTURE_SETUP(stampede)
{
	struct stampede *s = &self->s;
	const char *seconds = getenv("JIFFIES_STAMPEDE_SECONDS");
	struct timespec res;
	int err;

	s->kcore = -1;
	s->module = -1;
	s->seconds = seconds ? atoi(seconds) : 1;
	ASSERT_LT(0, s->seconds);
	ASSERT_TRUE(trace_guard_wait());
	/* The coarse clock moves with the tick. */
	ASSERT_EQ(0, clock_getres(CLOCK_MONOTONIC_COARSE, &res));
	s->tick_ns = res.tv_sec * NSEC_PER_SEC + res.tv_nsec;
	s->clk_ns = NSEC_PER_SEC / sysconf(_SC_CLK_TCK);

	check_kernel(s);
	if (s->skip[0])
		return;
	if (trace_read(s->skip, sizeof(s->skip),
		       "%s/events/lock/contention_begin/id", s->ti.root))
		return cannot(s, "no tracepoint lock:contention_begin");
	s->skip[0] = '\0';
	err = run_module(s, "time_secs=0");
	if (err)
		return cannot(s, "test_lockup.ko: %s", strerror(-err));

	trace_instance_name(&s->ti, "jiffies-stampede");
	ASSERT_EQ(0, trace_guard_start(&s->guard, undo, &s->ti));
	ASSERT_TRUE(setup_tracing(s)) {
		TH_LOG("tracing: %s", strerror(errno));
	}
	ASSERT_TRUE(start_busy_threads(s));
	if (s->nr_busy < MIN_CPUS)
		return cannot(s, "needs %d CPUs", MIN_CPUS);
	/* The one that watches must not wait for its CPU's busy thread. */
	ASSERT_EQ(0, setpriority(PRIO_PROCESS, syscall(SYS_gettid), -20));
}

FIXTURE_TEARDOWN(stampede)
{
	struct stampede *s = &self->s;

	stop_busy_threads(s);
	trace_guard_finish(&s->guard);
	if (s->kcore >= 0)
		close(s->kcore);
	if (s->module >= 0)
		close(s->module);
}

static void *holder_thread(void *arg)
{
	struct holder *holder = arg;
	char lock[64] = "";
	char params[160];

	if (holder->lock)
		snprintf(lock, sizeof(lock), " lock_spinlock_ptr=%lu",
			 holder->s->jiffies_lock);
	snprintf(params, sizeof(params), "time_secs=%d disable_irq=1%s",
		 holder->s->seconds, lock);
	__atomic_store_n(&holder->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	setpriority(PRIO_PROCESS, holder->tid, -20);
	while (!__atomic_load_n(&holder->go, __ATOMIC_ACQUIRE))
		relax();
	holder->error = run_module(holder->s, params);
	holder->end = now_ns();
	__atomic_store_n(&holder->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Whether less than @updates of the coarse clock were seen, and time is left. */
static bool is_patient(struct patience *patience, int updates)
{
	long long coarse = clock_ns(CLOCK_MONOTONIC_COARSE);

	if (!patience->start) {
		patience->start = now_ns();
		patience->coarse = coarse;
	}
	patience->updates += coarse != patience->coarse;
	patience->coarse = coarse;
	return patience->updates < updates &&
	       now_ns() - patience->start < PATIENCE_NS;
}

static int settled_timekeeper(struct stampede *s)
{
	struct patience patience = { 0 };
	struct cpu *cpu;

	/* A busy CPU takes a dropped duty on its tick, and keeps it. */
	do {
		relax();
		cpu = find_cpu(s, timekeeper(s));
		if (cpu && cpu->busy)
			return cpu->id;
	} while (is_patient(&patience, PATIENCE_UPDATES));
	return -1;
}

/* Some CPU with a busy thread that is neither @a nor @b. */
static int another_cpu(struct stampede *s, int a, int b)
{
	int i;

	for (i = s->nr_cpus - 1; i > 0; i--)
		if (s->cpus[i].busy && s->cpus[i].id != a &&
		    s->cpus[i].id != b)
			break;
	return s->cpus[i].id;
}

static long long coarse_lag(void)
{
	/* In this order the result is too small rather than too large. */
	long long now = now_ns();

	return now - clock_ns(CLOCK_MONOTONIC_COARSE);
}

/*
 * Reads the coarse clock, and how far it is ahead of jiffies. Returns false if
 * it was updated meanwhile, or the machine stood still.
 */
static bool read_clocks(struct stampede *s, long long *coarse, long long *ahead)
{
	*coarse = clock_ns(CLOCK_MONOTONIC_COARSE);
	*ahead = *coarse - jiffies_ns(s);
	return clock_ns(CLOCK_MONOTONIC_COARSE) == *coarse;
}

/*
 * How far the coarse clock is ahead when nothing is wrong. An update moves
 * jiffies first, so that it looks less for a moment, but never more.
 */
static long long measure_ahead(struct stampede *s)
{
	struct patience patience = { 0 };
	long long coarse, ahead, most = LLONG_MIN / 2;

	while (is_patient(&patience, 2 * MAX_STALLED_JIFFIES)) {
		if (read_clocks(s, &coarse, &ahead) && ahead > most)
			most = ahead;
		relax();
	}
	return most;
}

/*
 * Waits for an update after the end of a hold, of the coarse clock and, with
 * the same result, of jiffies.
 */
static void catch_up(struct stampede *s, struct holder *holder,
		     long long usual)
{
	long long slack = FEW_TICKS * s->tick_ns + s->clk_ns;
	struct patience patience = { 0 };
	long long coarse, ahead;

	do {
		relax();
		holder->in_step = read_clocks(s, &coarse, &ahead) &&
				  coarse >= holder->end &&
				  ahead <= usual + slack &&
				  ahead >= usual - slack;
	} while (!holder->in_step && is_patient(&patience, PATIENCE_UPDATES));
	holder->catch_up_ns = now_ns() - holder->end;
}

/* Keeps a time, and only every second one whenever there is no more room. */
static void note_pending(struct held *held)
{
	int i;

	if (!held->stride)
		held->stride = 1;
	if (held->pending_looks++ % held->stride)
		return;
	if (held->nr_stamps == MAX_STAMPS) {
		for (i = 0; i < MAX_STAMPS / 2; i++)
			held->stamps[i] = held->stamps[2 * i];
		held->nr_stamps = MAX_STAMPS / 2;
		held->stride *= 2;
	}
	held->stamps[held->nr_stamps++] = now_ns();
}

/* One look at the lock word, and the coarse clock, while the holder is at work. */
static void look(struct stampede *s, struct looks *looks)
{
	struct held *held = &looks->now;
	long long lag = coarse_lag();
	unsigned int word;

	if (lag > looks->worst_lag_ns)
		looks->worst_lag_ns = lag;
	if (!peek(s, s->jiffies_lock, &word) || !(word & Q_LOCKED)) {
		if (held->looks > looks->longest.looks)
			looks->longest = *held;
		held->looks = 0;
		return;
	}
	if (!held->looks)
		*held = (struct held){ .since = now_ns() };
	held->looks++;
	held->last = now_ns();
	if (word & Q_PENDING)
		note_pending(held);
}

/* Cuts the last word off what is between @line and *@end. */
static char *last_word(char *line, char **end)
{
	char *word;

	while (*end > line && (*end)[-1] == ' ')
		(*end)--;
	**end = '\0';
	for (word = *end; word > line && word[-1] != ' '; word--)
		;
	*end = word;
	return word;
}

/* Returns where the words before an event's name end, NULL if we know it not. */
static char *parse_kind(char *line, struct event *event)
{
	static const struct {
		const char *name;
		enum event_kind kind;
	} kinds[] = {
		{ ": hrtimer_expire_entry:", TICK },
		{ ": contention_begin:", WAIT_BEGIN },
		{ ": contention_end:", WAIT_END },
		{ ": tracing_mark_write:", MARK },
	};
	unsigned int i;
	char *end;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		end = strstr(line, kinds[i].name);
		if (!end)
			continue;
		event->kind = kinds[i].kind;
		event->phase = atoi(end + strlen(kinds[i].name));
		return end;
	}
	return NULL;
}

/* "comm-pid [cpu] flags seconds.usecs: contention_begin: ..." */
static bool parse_event(char *line, struct event *event)
{
	char *end = parse_kind(line, event);
	long long whole, usec;
	int numbers;
	char *dash;

	if (!end)
		return false;
	numbers = sscanf(last_word(line, &end), "%lld.%lld", &whole, &usec);
	if (numbers < 1)
		return false;
	event->when = whole;
	if (numbers == 2)
		event->when = whole * NSEC_PER_SEC + usec * NSEC_PER_USEC;
	last_word(line, &end);	/* flags */
	if (sscanf(last_word(line, &end), "[%d]", &event->cpu) != 1)
		return false;
	dash = strrchr(last_word(line, &end), '-');
	if (!dash)
		return false;
	event->pid = atoi(dash + 1);
	return true;
}

/*
 * Reads the trace, which is in the order of time, to *@events, to be freed.
 * Returns how many there are, -1 if something in it is not understood.
 */
static int read_events(struct stampede *s, struct event **events)
{
	char path[TRACE_PATH], line[1024];
	int nr = 0, max = 0;
	bool ok = true;
	FILE *f;

	*events = NULL;
	snprintf(path, sizeof(path), "%s/trace", s->ti.dir);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (ok && fgets(line, sizeof(line), f)) {
		if (line[0] == '#')
			continue;
		if (nr == max) {
			max = max ? 2 * max : 256;
			*events = realloc(*events, max * sizeof(**events));
			if (!*events)
				abort();
		}
		ok = parse_event(line, &(*events)[nr++]);
	}
	fclose(f);
	return ok ? nr : -1;
}

/* Ticks of the watcher, whose marks are in order with them. */
static void count_ticks(const struct event *events, int nr,
			int ticks[NR_PHASES])
{
	enum phase phase = BEFORE;
	int i;

	memset(ticks, 0, NR_PHASES * sizeof(*ticks));
	for (i = 0; i < nr; i++) {
		if (events[i].kind == TICK)
			ticks[phase]++;
		else if (events[i].kind == MARK && events[i].phase < NR_PHASES)
			phase = events[i].phase;
	}
}

/*
 * The watcher's ticks while the lock was seen held. There are more of them in
 * that phase: loading the module, and getting rid of it, take their time.
 */
static int ticks_while_held(const struct hold *hold, int nr)
{
	const struct held *held = &hold->holder.looks.longest;
	int i, ticks = 0;

	for (i = 0; i < nr; i++)
		ticks += hold->events[i].kind == TICK &&
			 hold->events[i].when >= held->since &&
			 hold->events[i].when <= held->last;
	return ticks;
}

/* Keeps who waited, and counts the ticks. */
static bool read_hold(struct stampede *s, struct hold *hold)
{
	int nr = read_events(s, &hold->events);
	int i;

	if (nr < 0)
		return false;
	count_ticks(hold->events, nr, hold->ticks);
	hold->ticks[HELD] = ticks_while_held(hold, nr);
	for (i = 0; i < nr; i++)
		if ((hold->events[i].kind == WAIT_BEGIN ||
		     hold->events[i].kind == WAIT_END) &&
		    hold->events[i].pid != hold->holder.tid)
			hold->events[hold->nr_events++] = hold->events[i];
	return true;
}

/* Whether the timekeeper was in the queue. */
static bool is_queued(const struct hold *hold, long long when)
{
	bool queued = false;
	int i;

	for (i = 0; i < hold->nr_events && hold->events[i].when <= when; i++)
		if (hold->events[i].cpu == hold->timekeeper)
			queued = hold->events[i].kind == WAIT_BEGIN;
	return queued;
}

/* Who stops waiting comes before who begins to at the same time. */
static void insert_event(struct hold *hold, struct event event)
{
	struct event *events;
	int i = 0;

	events = realloc(hold->events, (hold->nr_events + 1) * sizeof(event));
	if (!events)
		abort();
	while (i < hold->nr_events &&
	       (events[i].when < event.when ||
		(events[i].when == event.when && event.kind == WAIT_BEGIN)))
		i++;
	memmove(events + i + 1, events + i,
		(hold->nr_events - i) * sizeof(event));
	events[i] = event;
	hold->events = events;
	hold->nr_events++;
}

/*
 * When the lock was free again: the first in the queue to get it tells. So does
 * the timekeeper who comes to the queue, having been on the lock word @since.
 */
static long long find_release(const struct hold *hold, long long since)
{
	const struct event *event = hold->events;

	for (; event < hold->events + hold->nr_events; event++) {
		if (event->when <= hold->holder.looks.longest.since ||
		    event->when > hold->holder.end)
			continue;
		if (event->kind == WAIT_END)
			return event->when;
		if (since && event->when > since &&
		    event->cpu == hold->timekeeper)
			return event->when;
	}
	return hold->holder.looks.longest.last ?: hold->holder.end;
}

/*
 * Whoever spins on the lock word is in no event, and stays there until the
 * lock is free. It is the timekeeper, who has to wait, unless that one was in
 * the queue most of the times when somebody was seen to spin.
 */
static void add_pending(struct hold *hold)
{
	const struct held *held = &hold->holder.looks.longest;
	struct event event = { .cpu = -1, .pid = -1 };
	int i, queued = 0;

	hold->released = find_release(hold, 0);
	for (i = 0; i < held->nr_stamps; i++) {
		if (held->stamps[i] >= hold->released)
			break;
		queued += is_queued(hold, held->stamps[i]);
	}
	if (!i)
		return;
	hold->unseen = 2 * queued > i;
	if (!hold->unseen) {
		event.cpu = hold->timekeeper;
		hold->released = find_release(hold, held->stamps[0]);
	}
	event.kind = WAIT_BEGIN;
	event.when = held->stamps[0];
	insert_event(hold, event);
	event.kind = WAIT_END;
	event.when = hold->released;
	insert_event(hold, event);
}

static enum cpu_role role_of(const struct hold *hold, const struct event *event)
{
	if (event->cpu == hold->timekeeper)
		return TIMEKEEPER;
	return event->pid ? OTHER : IDLE_EXIT;
}

static void end_wait(struct hold *hold, struct cpu *cpu, long long when)
{
	long long waited = when - cpu->since;

	cpu->since = 0;
	hold->total_ns += waited;
	if (waited > hold->longest_ns)
		hold->longest_ns = waited;
}

/* Finds out who waited, why, and how long. */
static void judge(struct stampede *s, struct hold *hold)
{
	int i;

	for (i = 0; i < hold->nr_events; i++) {
		const struct event *event = &hold->events[i];
		struct cpu *cpu = find_cpu(s, event->cpu) ?: &hold->stranger;
		enum cpu_role role = role_of(hold, event);

		if (event->kind == WAIT_BEGIN) {
			if (role > cpu->role)
				cpu->role = role;
			cpu->since = event->when;
			hold->others += role == OTHER;
			if (hold->others > hold->other_at_once)
				hold->other_at_once = hold->others;
		} else if (cpu->since) {
			end_wait(hold, cpu, event->when);
			hold->others -= role == OTHER;
		}
	}
	for (i = 0; i < s->nr_cpus; i++) {
		if (s->cpus[i].since)
			end_wait(hold, &s->cpus[i], hold->holder.end);
		hold->waiters[s->cpus[i].role]++;
	}
	hold->waiters[hold->stranger.role]++;
}

/* For a plot: how many CPUs waited at each time at which that changed. */
static void print_timeline(const struct hold *hold)
{
	const struct event *event = hold->events;
	int waiting = 0;

	for (; event < hold->events + hold->nr_events; event++) {
		waiting += event->kind == WAIT_BEGIN ? 1 : -1;
		printf("# timeline=%lld %d\n",
		       (event->when - hold->holder.looks.longest.since) /
		       NSEC_PER_USEC, waiting);
	}
}

static void print_hold(struct stampede *s, const struct hold *hold)
{
	const int *waiters = hold->waiters;

	printf("# cpus=%d\n", s->nr_cpus);
	printf("# timekeeper_cpu=%d\n", hold->timekeeper);
	printf("# holder_cpu=%d\n", hold->holder.cpu);
	printf("# tick_us=%lld\n", s->tick_ns / NSEC_PER_USEC);
	printf("# hold_us=%lld\n",
	       (hold->released - hold->holder.looks.longest.since) /
	       NSEC_PER_USEC);
	printf("# hold_ticks=%d\n", hold->ticks[HELD]);
	printf("# waiters=%d\n",
	       waiters[TIMEKEEPER] + waiters[IDLE_EXIT] + waiters[OTHER]);
	printf("# waiters_timekeeper=%d\n", waiters[TIMEKEEPER]);
	printf("# waiters_idle=%d\n", waiters[IDLE_EXIT]);
	printf("# waiters_other=%d\n", waiters[OTHER]);
	printf("# waiters_unseen=%d\n", hold->unseen);
	printf("# other_at_once=%d\n", hold->other_at_once);
	printf("# longest_wait_us=%lld\n",
	       hold->longest_ns / NSEC_PER_USEC);
	printf("# total_wait_us=%lld\n",
	       hold->total_ns / NSEC_PER_USEC);
	printf("# catch_up_us=%lld\n",
	       hold->holder.catch_up_ns / NSEC_PER_USEC);
	printf("# catch_up_ticks=%d\n", hold->ticks[CATCHING_UP]);
	if (getenv("JIFFIES_STAMPEDE_TIMELINE"))
		print_timeline(hold);
	fflush(stdout);
}

/* Puts a holder on its CPU, ready to go. */
static bool start_holder(struct holder *holder)
{
	if (!start_on(&holder->thread, holder->cpu, holder_thread, holder))
		return false;
	while (!__atomic_load_n(&holder->tid, __ATOMIC_ACQUIRE))
		relax();
	return true;
}

/* Begins a phase, on the CPU whose ticks are in the trace. */
static void mark(struct stampede *s, enum phase phase)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", phase);
	trace_write(text, "%s/trace_marker", s->ti.dir);
}

/* Lets the holder do its work and looks on. Returns NULL, or what went wrong. */
static const char *run_holder(struct stampede *s, struct holder *holder)
{
	long long usual;

	if (!pin_self(holder->watcher))
		return "cannot pin this thread";
	if (!watch_ticks(s, holder->watcher))
		return "cannot trace the tick";
	if (!start_holder(holder))
		return "cannot start a thread on the holder's CPU";
	usual = measure_ahead(s);
	trace_clear(&s->ti);
	trace_write("1", "%s/tracing_on", s->ti.dir);
	mark(s, HELD);
	__atomic_store_n(&holder->go, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&holder->done, __ATOMIC_ACQUIRE)) {
		look(s, &holder->looks);
		relax();
	}
	mark(s, CATCHING_UP);
	catch_up(s, holder, usual);
	mark(s, AFTER);
	trace_write("0", "%s/tracing_on", s->ti.dir);
	pthread_join(holder->thread, NULL);
	if (holder->looks.now.looks > holder->looks.longest.looks)
		holder->looks.longest = holder->looks.now;
	return holder->error ? strerror(-holder->error) : NULL;
}

/* Holds the lock once. Returns NULL, or what went wrong. */
static const char *hold_once(struct stampede *s, struct hold *hold)
{
	const char *error;
	int i;

	memset(hold, 0, sizeof(*hold));
	for (i = 0; i < s->nr_cpus; i++) {
		s->cpus[i].role = NOT_WAITING;
		s->cpus[i].since = 0;
	}
	hold->timekeeper = settled_timekeeper(s);
	if (hold->timekeeper < 0)
		return "no CPU with a busy thread is timekeeper";
	hold->holder.s = s;
	hold->holder.lock = true;
	hold->holder.cpu = another_cpu(s, hold->timekeeper, -1);
	hold->holder.watcher = another_cpu(s, hold->timekeeper,
					   hold->holder.cpu);
	error = run_holder(s, &hold->holder);
	if (error)
		return error;
	if (!read_hold(s, hold))
		return "cannot read the trace";
	add_pending(hold);
	judge(s, hold);
	return NULL;
}

/* Returns why a hold of the lock proves nothing in either direction, or NULL. */
static const char *unproven(struct stampede *s, const struct hold *hold)
{
	if (!hold->holder.looks.longest.looks)
		return "jiffies_lock was never seen held";
	if (timekeeper(s) != hold->timekeeper)
		return "the timekeeper has changed meanwhile";
	if (hold->ticks[HELD] < MAX_STALLED_JIFFIES &&
	    find_cpu(s, hold->holder.watcher)->role == NOT_WAITING)
		return "a CPU had too few ticks to notice anything";
	/* Else it would be no proof that others are not seen to wait. */
	if (!hold->waiters[TIMEKEEPER])
		return "the timekeeper was not seen to wait";
	if (hold->unseen && s->nr_busy < s->nr_cpus)
		return "who spins on the lock word may have been idle";
	if (!hold->holder.in_step &&
	    hold->ticks[CATCHING_UP] <= CATCH_UP_TICKS)
		return "jiffies had too few ticks to catch up";
	return NULL;
}

/* Holds the lock until it proves something. Returns NULL, or what went wrong. */
static const char *hold_lock(struct stampede *s, struct hold *hold)
{
	const char *error;
	int try;

	for (try = 1; ; try++) {
		error = hold_once(s, hold);
		if (error)
			return error;
		error = unproven(s, hold);
		if (!error || try == MAX_TRIES)
			break;
		printf("# hold %d proves nothing: %s\n", try, error);
		fflush(stdout);
		free(hold->events);
	}
	print_hold(s, hold);
	free(hold->events);
	return error;
}

/* Holds the lock, and expects that at most @most others wait at a time. */
static void expect_no_stampede(struct __test_metadata *_metadata,
			       struct stampede *s, int most)
{
	struct hold hold;
	const char *error = hold_lock(s, &hold);

	ASSERT_EQ(NULL, error) {
		TH_LOG("could not be done: %s", error);
	}
	EXPECT_GE(most, hold.other_at_once);
}

TEST_F_TIMEOUT(stampede, held_lock_keeps_nobody_waiting, CASE_SECONDS)
{
	if (self->s.skip[0])
		SKIP(return, "%s", self->s.skip);
	expect_no_stampede(_metadata, &self->s, 0);
}

TEST_F_TIMEOUT(stampede, at_most_one_cpu_waits, CASE_SECONDS)
{
	if (self->s.skip[0])
		SKIP(return, "%s", self->s.skip);
	expect_no_stampede(_metadata, &self->s, 1);
}

/* Nothing that the first hold leaves behind may change the second. */
TEST_F_TIMEOUT(stampede, second_hold_is_the_same, CASE_SECONDS)
{
	if (self->s.skip[0])
		SKIP(return, "%s", self->s.skip);
	expect_no_stampede(_metadata, &self->s, 1);
	expect_no_stampede(_metadata, &self->s, 1);
}

TEST_F_TIMEOUT(stampede, jiffies_catch_up, CASE_SECONDS)
{
	struct stampede *s = &self->s;
	const char *error;
	struct hold hold;

	if (s->skip[0])
		SKIP(return, "%s", s->skip);
	error = hold_lock(s, &hold);
	ASSERT_EQ(NULL, error) {
		TH_LOG("could not be done: %s", error);
	}
	EXPECT_TRUE(hold.holder.in_step);
	EXPECT_GE(CATCH_UP_TICKS, hold.ticks[CATCHING_UP]);
}

/* The timekeeper is out, and the lock is free. */
struct stall {
	int timekeeper;
	struct holder holder;
	int longest;		/* ticks in a row that all saw the same jiffies */
	int ticks[NR_PHASES];
};

static bool read_stall(struct stampede *s, struct stall *stall)
{
	struct event *events;
	int nr = read_events(s, &events);
	long long seen = -1;
	int i, ticks = 0;

	if (nr < 0)
		return false;
	count_ticks(events, nr, stall->ticks);
	for (i = 0; i < nr; i++) {
		if (events[i].kind != TICK)
			continue;
		ticks = events[i].when == seen ? ticks + 1 : 1;
		seen = events[i].when;
		if (ticks > stall->longest)
			stall->longest = ticks;
	}
	free(events);
	return true;
}

/* Has the timekeeper disable interrupts. Returns NULL, or what went wrong. */
static const char *stall_once(struct stampede *s, struct stall *stall)
{
	const char *error;

	memset(stall, 0, sizeof(*stall));
	stall->timekeeper = settled_timekeeper(s);
	if (stall->timekeeper < 0)
		return "no CPU with a busy thread is timekeeper";
	stall->holder.s = s;
	stall->holder.cpu = stall->timekeeper;
	stall->holder.watcher = another_cpu(s, stall->timekeeper, -1);
	/* A clock that tells jiffies, though no finer than USER_HZ. */
	if (trace_write("uptime", "%s/trace_clock", s->ti.dir))
		return "cannot have jiffies in the trace";
	error = run_holder(s, &stall->holder);
	if (error)
		return error;
	return read_stall(s, stall) ? NULL : "cannot read the trace";
}

/* Returns why a stall proves nothing in either direction, or NULL. */
static const char *unproven_stall(struct stampede *s, const struct stall *stall)
{
	if (stall->longest < FEW_TICKS)
		return "jiffies were not seen to stand still";
	if (timekeeper(s) != stall->timekeeper)
		return "the timekeeper has changed meanwhile";
	if (!stall->holder.in_step &&
	    stall->ticks[CATCHING_UP] <= CATCH_UP_TICKS)
		return "jiffies had too few ticks to catch up";
	return NULL;
}

/* Stalls jiffies until it proves something. Returns NULL, or what went wrong. */
static const char *stall_jiffies(struct stampede *s, struct stall *stall)
{
	const char *error;
	int try;

	for (try = 1; ; try++) {
		error = stall_once(s, stall);
		if (error)
			return error;
		error = unproven_stall(s, stall);
		if (!error || try == MAX_TRIES)
			return error;
		printf("# stall %d proves nothing: %s\n", try, error);
		fflush(stdout);
	}
}

/*
 * The timekeeper is out, but the lock is free: somebody else does the update
 * when jiffies have stood still for MAX_STALLED_JIFFIES ticks. Those are ticks
 * that a CPU has had: it is not to blame for ticks that come late.
 */
TEST_F_TIMEOUT(stampede, stall_is_taken_over, CASE_SECONDS)
{
	struct stampede *s = &self->s;
	int bound = MAX_STALLED_JIFFIES + FEW_TICKS + s->clk_ns / s->tick_ns;
	struct stall stall;
	const char *error;

	if (s->skip[0])
		SKIP(return, "%s", s->skip);
	error = stall_jiffies(s, &stall);
	printf("# cpus=%d\n", s->nr_cpus);
	printf("# timekeeper_cpu=%d\n", stall.timekeeper);
	printf("# longest_stall_us=%lld\n",
	       stall.holder.looks.worst_lag_ns / NSEC_PER_USEC);
	printf("# longest_stall_ticks=%d\n", stall.longest);
	printf("# bound_ticks=%d\n", bound);
	printf("# catch_up_us=%lld\n",
	       stall.holder.catch_up_ns / NSEC_PER_USEC);
	printf("# catch_up_ticks=%d\n", stall.ticks[CATCHING_UP]);
	fflush(stdout);

	ASSERT_EQ(NULL, error) {
		TH_LOG("could not be done: %s", error);
	}
	EXPECT_GE(bound, stall.longest);
	EXPECT_TRUE(stall.holder.in_step);
	EXPECT_GE(CATCH_UP_TICKS, stall.ticks[CATCHING_UP]);
}

TEST_HARNESS_MAIN
