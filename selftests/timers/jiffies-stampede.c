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
 * timekeeper only if the timekeeper was not seen in the queue.
 *
 * What is demanded does not depend on how the kernel does it. A kernel which
 * lets one CPU at a time through to the lock fails the first case, which has
 * nobody wait, and passes the second.
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
#define STACK_SIZE		(128 * 1024)
#define CASE_SECONDS		240

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

/* One CPU: its busy thread, and what a hold of the lock did to it. */
struct cpu {
	pthread_t thread;
	int id;
	bool busy;		/* it has a thread, none if we must not run on it */
	int *stop;
	int running;		/* the thread has come to its loop */
	long long still_ns;	/* longest time without progress */

	enum cpu_role role;
	long long since;		/* waiting since, 0: not waiting */
	long long longest_ns;
};

struct event {
	long long when;		/* in ns, or in jiffies with that clock */
	int cpu;
	int pid;
	bool tick;		/* the CPU's tick, else waiting for the lock, */
	bool begin;		/* which begins, else ends */
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

/* What holds the lock, or only disables interrupts, in a thread of its own. */
struct holder {
	struct stampede *s;
	pthread_t thread;
	bool lock;
	int go;
	int done;
	pid_t tid;
	int error;		/* of finit_module() */
	long long start, end;
};

struct hold {
	int timekeeper;
	int holder;
	pid_t holder_tid;
	long long locked_since;	/* as seen in the lock word, 0: never */
	long long pending_since;	/* somebody spins on the lock word, 0: nobody */
	long long pending_until;	/* when that was seen last */
	long long end;
	struct event *events;
	int nr_events;

	int waiters[NR_ROLES];	/* CPUs */
	int unseen;		/* of the others, spinning on the lock word */
	int other_at_once;	/* the most at one time */
	long long longest_ns, total_ns;
	long long catch_up_ns;	/* from the end to jiffies being right again */
	int catch_up_ticks;	/* of a CPU that is not the timekeeper */
};

/* Differences between the clocks when nothing is wrong. */
struct lag {
	long long jiffies_base;	/* CLOCK_MONOTONIC minus jiffies */
	long long coarse;		/* CLOCK_MONOTONIC minus the coarse clock */
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

/* Keeps a CPU out of idle, and notes how long it did not get to run. */
static void *busy_thread(void *arg)
{
	struct cpu *cpu = arg;
	long long last = now_ns();
	long long now;

	__atomic_store_n(&cpu->running, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(cpu->stop, __ATOMIC_ACQUIRE)) {
		relax();
		now = now_ns();
		if (now - last > cpu->still_ns)
			__atomic_store_n(&cpu->still_ns, now - last,
					 __ATOMIC_RELAXED);
		last = now;
	}
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

/* Returns how many there are, one for each online CPU that we may run on. */
static int start_busy_threads(struct stampede *s)
{
	char list[4096];
	char *rest = list;
	char *range;
	int first, last, found, id, max = 0, busy = 0;

	if (trace_read(list, sizeof(list), "/sys/devices/system/cpu/online"))
		return -1;
	while ((range = strsep(&rest, ","))) {
		found = sscanf(range, "%d-%d", &first, &last);
		if (found < 1)
			return -1;
		if (found < 2)
			last = first;
		if (s->nr_cpus + last - first + 1 > max) {
			max = 2 * (s->nr_cpus + last - first + 1);
			s->cpus = realloc(s->cpus, max * sizeof(*s->cpus));
			if (!s->cpus)
				return -1;
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
		busy += cpu->busy;
	}
	for (id = 0; id < s->nr_cpus; id++)
		while (s->cpus[id].busy &&
		       !__atomic_load_n(&s->cpus[id].running, __ATOMIC_ACQUIRE))
			relax();
	return busy;
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
	char value[64];
	unsigned int key;

	if (geteuid())
		return cannot(s, "needs root");
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
	return enable_event(s, "timer/hrtimer_expire_entry", filter);
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
	int err, busy;

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
	busy = start_busy_threads(s);
	ASSERT_LE(0, busy);
	if (busy < MIN_CPUS)
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
	holder->tid = syscall(SYS_gettid);
	setpriority(PRIO_PROCESS, holder->tid, -20);
	while (!__atomic_load_n(&holder->go, __ATOMIC_ACQUIRE))
		relax();
	holder->start = now_ns();
	holder->error = run_module(holder->s, params);
	holder->end = now_ns();
	__atomic_store_n(&holder->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int settled_timekeeper(struct stampede *s)
{
	long long deadline = now_ns() + NSEC_PER_SEC;
	struct cpu *cpu;

	/* A busy CPU takes a dropped duty on its tick, and keeps it. */
	do {
		relax();
		cpu = find_cpu(s, timekeeper(s));
		if (cpu && cpu->busy)
			return cpu->id;
	} while (now_ns() < deadline);
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

/* Watches for @ticks how far apart the clocks are when nothing is wrong. */
static struct lag measure_lag(struct stampede *s, int ticks)
{
	long long deadline = now_ns() + ticks * s->tick_ns;
	struct lag lag = { .jiffies_base = LLONG_MAX };
	long long now, base, coarse;

	do {
		now = now_ns();
		base = now - jiffies_ns(s);
		if (base < lag.jiffies_base)
			lag.jiffies_base = base;
		coarse = coarse_lag();
		if (coarse > lag.coarse)
			lag.coarse = coarse;
		relax();
	} while (now < deadline);
	return lag;
}

/* jiffies, the coarse clock and CLOCK_MONOTONIC tell the same time. */
static bool in_step(struct stampede *s, const struct lag *lag)
{
	/* Where ticks come late, so does what they do. */
	long long few = FEW_TICKS * (lag->coarse > s->tick_ns ? lag->coarse :
							 s->tick_ns);
	long long now = now_ns();
	long long off = now - jiffies_ns(s) - lag->jiffies_base;

	return off < few + s->clk_ns && off > -few - s->clk_ns &&
	       coarse_lag() < few;
}

/* Time from @since until all is in step, or a second if it never is. */
static long long catch_up(struct stampede *s, const struct lag *lag,
			  long long since)
{
	long long now;

	do {
		relax();
		now = now_ns();
	} while (!in_step(s, lag) && now - since < NSEC_PER_SEC);
	return now - since;
}

/* One look at the lock word while the holder is at work. */
static void look_at_lock(struct stampede *s, struct hold *hold)
{
	unsigned int word;

	if (!peek(s, s->jiffies_lock, &word) || !(word & Q_LOCKED))
		return;
	if (!hold->locked_since)
		hold->locked_since = now_ns();
	if (!(word & Q_PENDING))
		return;
	hold->pending_until = now_ns();
	if (!hold->pending_since)
		hold->pending_since = hold->pending_until;
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

/* "comm-pid [cpu] flags seconds.usecs: contention_begin: ..." */
static bool parse_event(char *line, struct event *event)
{
	char *tick = strstr(line, ": hrtimer_expire_entry:");
	char *end = tick ?: strstr(line, ": contention_");
	long long whole, usec;
	int numbers;
	char *dash;

	if (!end)
		return false;
	event->tick = tick;
	event->begin = !strncmp(end, ": contention_begin", 18);
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

/* Keeps those who waited, counts the ticks that jiffies took to catch up. */
static bool read_hold(struct stampede *s, struct hold *hold)
{
	int nr = read_events(s, &hold->events);
	const struct event *event = hold->events;

	for (; event < hold->events + nr; event++) {
		if (event->tick)
			hold->catch_up_ticks += event->when > hold->end &&
				event->when <= hold->end + hold->catch_up_ns;
		else if (event->pid != hold->holder_tid)
			hold->events[hold->nr_events++] = *event;
	}
	return nr >= 0;
}

static void set_role(struct cpu *cpu, enum cpu_role role)
{
	if (role > cpu->role)
		cpu->role = role;
}

static void end_wait(struct hold *hold, struct cpu *cpu, long long ns)
{
	long long waited = ns - cpu->since;

	cpu->since = 0;
	if (waited > cpu->longest_ns)
		cpu->longest_ns = waited;
	hold->total_ns += waited;
	if (waited > hold->longest_ns)
		hold->longest_ns = waited;
}

/*
 * When the lock was free again. The first in the queue to get it tells, or the
 * timekeeper, if it comes to the queue having been seen on the lock word.
 */
static long long released(const struct hold *hold)
{
	const struct event *event = hold->events;

	for (; event < hold->events + hold->nr_events; event++) {
		if (event->when <= hold->locked_since ||
		    event->when > hold->end)
			continue;
		if (!event->begin)
			return event->when;
		if (event->cpu == hold->timekeeper && !hold->unseen &&
		    hold->pending_since && event->when > hold->pending_since)
			return event->when;
	}
	return hold->end;
}

/*
 * Whoever spins on the lock word is in no event. It is the timekeeper, who has
 * to wait, unless that one was seen to do so in the queue.
 */
static void judge_pending(struct stampede *s, struct hold *hold)
{
	struct cpu *pending = find_cpu(s, hold->timekeeper);
	long long most = (hold->end - hold->locked_since) / 2;
	struct cpu *cpu;

	if (!hold->pending_since)
		return;
	if (pending->longest_ns > most) {
		if (hold->pending_until - hold->pending_since < most)
			return;	/* somebody was just passing */
		pending = NULL;
		for (cpu = s->cpus; cpu < s->cpus + s->nr_cpus; cpu++)
			if (cpu->longest_ns < most &&
			    cpu->id != hold->holder &&
			    (!pending || cpu->still_ns > pending->still_ns))
				pending = cpu;
		if (!pending)
			return;
		hold->unseen = 1;
	}
	set_role(pending, hold->unseen ? OTHER : TIMEKEEPER);
	pending->since = hold->pending_since;
	end_wait(hold, pending, released(hold));
}

/* Finds out who waited, why, and how long. */
static void judge(struct stampede *s, struct hold *hold)
{
	int others = 0;
	int i;

	for (i = 0; i < hold->nr_events; i++) {
		const struct event *event = &hold->events[i];
		struct cpu *cpu = find_cpu(s, event->cpu);
		enum cpu_role role = OTHER;

		if (!cpu) {	/* has come online meanwhile */
			hold->waiters[OTHER] += event->begin;
			continue;
		}
		if (cpu->id == hold->timekeeper)
			role = TIMEKEEPER;
		else if (!event->pid)
			role = IDLE_EXIT;
		if (event->begin) {
			set_role(cpu, role);
			cpu->since = event->when;
			others += role == OTHER;
			if (others > hold->other_at_once)
				hold->other_at_once = others;
		} else if (cpu->since) {
			end_wait(hold, cpu, event->when);
			others -= role == OTHER;
		}
	}
	for (i = 0; i < s->nr_cpus; i++)
		if (s->cpus[i].since)
			end_wait(hold, &s->cpus[i], hold->end);
	judge_pending(s, hold);
	hold->other_at_once += hold->unseen;
	for (i = 0; i < s->nr_cpus; i++)
		hold->waiters[s->cpus[i].role]++;
}

/* By time, and who stops waiting before who begins to. */
static int compare_steps(const void *a, const void *b)
{
	const struct event *left = a;
	const struct event *right = b;

	if (left->when != right->when)
		return left->when < right->when ? -1 : 1;
	return left->begin - right->begin;
}

/* For a plot: how many CPUs waited at each time at which that changed. */
static void print_timeline(const struct hold *hold)
{
	int nr = hold->nr_events;
	long long free_at = released(hold);
	struct event *steps = calloc(nr + 2, sizeof(*steps));
	int waiting = 0;
	int i;

	if (!steps)
		return;
	if (nr)
		memcpy(steps, hold->events, nr * sizeof(*steps));
	if (hold->pending_since) {
		steps[nr++] = (struct event){ .when = hold->pending_since,
					      .begin = true };
		steps[nr++] = (struct event){ .when = free_at };
		qsort(steps, nr, sizeof(*steps), compare_steps);
	}
	for (i = 0; i < nr; i++) {
		waiting += steps[i].begin ? 1 : -1;
		printf("# timeline=%lld %d\n",
		       (steps[i].when - hold->locked_since) / NSEC_PER_USEC,
		       waiting);
	}
	free(steps);
}

static void print_hold(struct stampede *s, const struct hold *hold)
{
	const int *waiters = hold->waiters;

	printf("# cpus=%d\n", s->nr_cpus);
	printf("# timekeeper_cpu=%d\n", hold->timekeeper);
	printf("# holder_cpu=%d\n", hold->holder);
	printf("# tick_us=%lld\n", s->tick_ns / NSEC_PER_USEC);
	printf("# hold_us=%lld\n",
	       (released(hold) - hold->locked_since) / NSEC_PER_USEC);
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
	       hold->catch_up_ns / NSEC_PER_USEC);
	printf("# catch_up_ticks=%d\n", hold->catch_up_ticks);
	if (getenv("JIFFIES_STAMPEDE_TIMELINE"))
		print_timeline(hold);
	fflush(stdout);
}

/* Puts a holder on @cpu, ready to go. */
static bool start_holder(struct holder *holder, int cpu)
{
	if (!start_on(&holder->thread, cpu, holder_thread, holder))
		return false;
	while (!__atomic_load_n(&holder->tid, __ATOMIC_ACQUIRE))
		relax();
	return true;
}

static void reset_hold(struct stampede *s)
{
	int i;

	for (i = 0; i < s->nr_cpus; i++) {
		s->cpus[i].role = NOT_WAITING;
		s->cpus[i].since = 0;
		s->cpus[i].longest_ns = 0;
		__atomic_store_n(&s->cpus[i].still_ns, 0, __ATOMIC_RELAXED);
	}
}

/* Holds the lock once. Returns NULL, or what went wrong. */
static const char *hold_lock(struct stampede *s, struct hold *hold)
{
	struct holder holder = { .s = s, .lock = true };
	struct lag lag;
	int watcher;

	memset(hold, 0, sizeof(*hold));
	hold->timekeeper = settled_timekeeper(s);
	if (hold->timekeeper < 0)
		return "no CPU with a busy thread is timekeeper";
	hold->holder = another_cpu(s, hold->timekeeper, -1);
	watcher = another_cpu(s, hold->timekeeper, hold->holder);
	if (!pin_self(watcher) || !start_holder(&holder, hold->holder))
		return "cannot pin threads";
	if (!watch_ticks(s, watcher))
		return "cannot trace the tick";
	lag = measure_lag(s, 2 * MAX_STALLED_JIFFIES);
	reset_hold(s);
	trace_clear(&s->ti);
	trace_write("1", "%s/tracing_on", s->ti.dir);

	__atomic_store_n(&holder.go, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&holder.done, __ATOMIC_ACQUIRE)) {
		look_at_lock(s, hold);
		relax();
	}
	hold->end = holder.end;
	hold->catch_up_ns = catch_up(s, &lag, holder.end);
	trace_write("0", "%s/tracing_on", s->ti.dir);
	pthread_join(holder.thread, NULL);
	hold->holder_tid = holder.tid;
	if (holder.error)
		return strerror(-holder.error);
	if (!hold->locked_since)
		return "jiffies_lock was never seen held";
	if (timekeeper(s) != hold->timekeeper)
		return "the timekeeper has changed meanwhile";
	if (!read_hold(s, hold))
		return "cannot read the trace";
	judge(s, hold);
	print_hold(s, hold);
	free(hold->events);
	return NULL;
}

/* Holds the lock, and expects that at most @most others wait at a time. */
static void expect_no_stampede(struct __test_metadata *_metadata,
			       struct stampede *s, int most)
{
	struct hold hold;
	const char *error = hold_lock(s, &hold);

	ASSERT_EQ(NULL, error) {
		TH_LOG("%s", error);
	}
	/* Else it would be no proof that others are not seen to wait. */
	EXPECT_EQ(1, hold.waiters[TIMEKEEPER]);
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
		TH_LOG("%s", error);
	}
	EXPECT_GT(NSEC_PER_SEC, hold.catch_up_ns);
	EXPECT_GE(MAX_STALLED_JIFFIES, hold.catch_up_ticks);
}

/* The most ticks in a row that all saw the same jiffies, -1 if unknown. */
static int longest_stall(struct stampede *s)
{
	struct event *events;
	int nr = read_events(s, &events);
	int i, ticks = 0, longest = nr < 0 ? -1 : 0;
	long long seen = -1;

	for (i = 0; i < nr; i++) {
		if (!events[i].tick)
			continue;
		ticks = events[i].when == seen ? ticks + 1 : 1;
		seen = events[i].when;
		if (ticks > longest)
			longest = ticks;
	}
	free(events);
	return longest;
}

/*
 * The timekeeper is out, but the lock is free: somebody else does the update
 * when jiffies have stood still for MAX_STALLED_JIFFIES ticks. Those are ticks
 * that a CPU has had: it is not to blame for ticks that come late. A clock in
 * the trace tells jiffies, though no finer than USER_HZ.
 */
TEST_F_TIMEOUT(stampede, stall_is_taken_over, CASE_SECONDS)
{
	struct stampede *s = &self->s;
	struct holder holder = { .s = s };
	int bound = MAX_STALLED_JIFFIES + FEW_TICKS + s->clk_ns / s->tick_ns;
	int cpu, watcher, ticks;
	long long lag_ns, worst_ns = 0;
	struct lag lag;

	if (s->skip[0])
		SKIP(return, "%s", s->skip);
	cpu = settled_timekeeper(s);
	ASSERT_LE(0, cpu);
	watcher = another_cpu(s, cpu, -1);
	ASSERT_TRUE(pin_self(watcher));
	ASSERT_TRUE(start_holder(&holder, cpu));
	lag = measure_lag(s, 2 * MAX_STALLED_JIFFIES);
	ASSERT_EQ(0, trace_write("uptime", "%s/trace_clock", s->ti.dir));
	ASSERT_TRUE(watch_ticks(s, watcher));
	trace_write("1", "%s/tracing_on", s->ti.dir);
	__atomic_store_n(&holder.go, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&holder.done, __ATOMIC_ACQUIRE)) {
		lag_ns = coarse_lag();
		if (lag_ns > worst_ns)
			worst_ns = lag_ns;
		relax();
	}
	trace_write("0", "%s/tracing_on", s->ti.dir);
	lag_ns = catch_up(s, &lag, holder.end);
	pthread_join(holder.thread, NULL);
	ASSERT_EQ(0, holder.error);
	ticks = longest_stall(s);

	printf("# cpus=%d\n", s->nr_cpus);
	printf("# timekeeper_cpu=%d\n", cpu);
	printf("# longest_stall_us=%lld\n", worst_ns / NSEC_PER_USEC);
	printf("# longest_stall_ticks=%d\n", ticks);
	printf("# bound_ticks=%d\n", bound);
	printf("# catch_up_us=%lld\n", lag_ns / NSEC_PER_USEC);
	fflush(stdout);

	/* Else it was not the timekeeper that had its interrupts disabled. */
	EXPECT_LE(FEW_TICKS, ticks);
	EXPECT_LT(FEW_TICKS * s->tick_ns, worst_ns);
	EXPECT_GE(bound, ticks);
	EXPECT_GT(NSEC_PER_SEC, lag_ns);
}

TEST_HARNESS_MAIN
