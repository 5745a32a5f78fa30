// SPDX-License-Identifier: GPL-2.0
/*
 * hwlat numbers each sample once, whatever goes on meanwhile.
 *
 * In per-cpu mode every CPU takes samples, and all take their numbers from
 * one counter. No number may appear twice, and none may be missing unless the
 * ring buffer says that it has lost events.
 *
 * The samples go to a tracing instance of the test's own and are read while
 * they come, so that a run can take as long as one likes. A hardware
 * watchpoint (see hwlat_watch.c) makes races for the counter happen within
 * seconds; without it, the same takes luck.
 *
 * What bounds a case is the samples that came, and how often it has looked for
 * them, not only the clock: the machine may be a virtual one which is slow, or
 * stands still for seconds while its clocks go on.
 *
 * Environment:
 *   HWLAT_SEQNUM_SECONDS=N   how long each case samples, 3 if not given; ten
 *                            times that where samples are rare, and more on a
 *                            slow machine
 *   HWLAT_SEQNUM_WATCH=0     no watchpoint
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <sys/sysinfo.h>

#include "../kselftest_harness.h"
#include "trace_instance.h"

#define DEFAULT_SECONDS		3
#define ENOUGH_PER_CPU		64	/* samples, if they come in time */
#define ENOUGH_TURNS	4	/* of what disturbs hwlat */
#define PATIENCE	10	/* times the seconds, in looks */
#define WIDTH			"1009"	/* odd enough to be found in memory */
#define WINDOW			"3011"
#define LOWEST_THRESH		"1"	/* us */
#define HIGHEST_THRESH		"100000000"
#define POLL_MS			10	/* from one look for samples to the next */
#define LOOKS_PER_SECOND	(1000 / POLL_MS)	/* at the most */
#define START_LOOKS		3000	/* bound for a sampling thread to start */
#define SAMPLE_LOOKS		1000	/* bound for samples to come */
#define BOUND_SECONDS		1800	/* for a case that hangs */
#define HARNESS_SECONDS		1000000	/* ours is the one that counts */
#define RESTARTS		5
#define MAX_HOTPLUG		3
#define MAX_HIDDEN		64
#define MAX_CPUS		8192
#define NUMBERS_LIMIT		0xffffffffULL

struct saved {			/* shared with the guard */
	struct trace_instance ti;
	char mode[32];
	char width[32];
	char window[32];
	char thresh[32];
	char last_thresh[32];	/* what hwlat takes when thresh is 0 */
	bool online[MAX_CPUS];
};

/* Numbers that CPUs which may not write to the buffer may have taken. */
struct hidden {
	unsigned long long first;
	unsigned long long last;
};

/* All that is known about the samples of one run of the tracer. */
struct tally {
	unsigned char *seen;	/* how often, by number */
	unsigned long long size;
	unsigned long long samples;
	unsigned long long duplicates;
	unsigned long long lowest;
	unsigned long long highest;
	unsigned long long gaps;	/* besides the lost and the hidden */
	unsigned long long lost;
	unsigned long long hidden;
	struct hidden intervals[MAX_HIDDEN];
	int nr_intervals;
	unsigned long long at_hand;	/* may be missing besides, see write_cpumask() */
};

struct hwlat {
	char skip[128];
	struct saved *saved;
	struct trace_guard guard;
	struct tally tally;
	pid_t watch;
	int watch_pipe;		/* hwlat_watch runs until this is closed */
	int watching;		/* CPUs */
	int pipe;		/* trace_pipe of our instance */
	char partial[512];	/* of a line */
	size_t partial_len;
	int seconds;
	int looks;		/* for samples, in this run */
};

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Width must never be larger than window, not even for a moment. */
static int set_times(const struct trace_instance *ti, const char *width,
		     const char *window)
{
	return trace_write("1", "%s/hwlat_detector/width", ti->root) ||
	       trace_write(window, "%s/hwlat_detector/window", ti->root) ||
	       trace_write(width, "%s/hwlat_detector/width", ti->root);
}

static int set_thresh(const struct trace_instance *ti, const char *thresh)
{
	return trace_write(thresh, "%s/tracing_thresh", ti->root);
}

static int set_mode(const struct trace_instance *ti, const char *mode)
{
	return trace_write(mode, "%s/hwlat_detector/mode", ti->root);
}

static int set_tracer(const struct trace_instance *ti, const char *tracer)
{
	return trace_write(tracer, "%s/current_tracer", ti->dir);
}

static int set_recording(const struct trace_instance *ti, bool on)
{
	return trace_write(on ? "1" : "0", "%s/tracing_on", ti->dir);
}

static int set_cpu_online(int cpu, bool online)
{
	return trace_write(online ? "1" : "0",
			   "/sys/devices/system/cpu/cpu%d/online", cpu);
}

/* Only what can be taken offline has such a file. */
static bool is_cpu_online(int cpu)
{
	char state[4];

	return !trace_read(state, sizeof(state),
			   "/sys/devices/system/cpu/cpu%d/online", cpu) &&
	       state[0] == '1';
}

/* Puts everything back, in the guard's process. */
static void undo(void *data)
{
	const struct saved *saved = data;
	const struct trace_instance *ti = &saved->ti;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (saved->online[cpu] && !is_cpu_online(cpu))
			set_cpu_online(cpu, true);
	set_recording(ti, false);
	set_tracer(ti, "nop");
	set_times(ti, saved->width, saved->window);
	if (saved->last_thresh[0]) {
		/* It remembers the threshold of its last run. */
		set_thresh(ti, saved->last_thresh);
		set_tracer(ti, "hwlat");
		set_tracer(ti, "nop");
	}
	set_mode(ti, saved->mode);
	set_thresh(ti, saved->thresh);
	trace_instance_undo(ti);
}

/* "none [round-robin] per-cpu" */
static bool read_mode(struct saved *saved)
{
	char modes[64];
	char *mode;

	if (trace_read(modes, sizeof(modes), "%s/hwlat_detector/mode",
		       saved->ti.root))
		return false;
	mode = strchr(modes, '[');
	if (!mode)
		return false;
	mode++;
	mode[strcspn(mode, "]")] = '\0';
	snprintf(saved->mode, sizeof(saved->mode), "%.31s", mode);
	return true;
}

static bool save_settings(struct saved *saved)
{
	const char *root = saved->ti.root;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		saved->online[cpu] = is_cpu_online(cpu);
	return !trace_read(saved->width, sizeof(saved->width),
			   "%s/hwlat_detector/width", root) &&
	       !trace_read(saved->window, sizeof(saved->window),
			   "%s/hwlat_detector/window", root) &&
	       !trace_read(saved->thresh, sizeof(saved->thresh),
			   "%s/tracing_thresh", root) &&
	       read_mode(saved);
}

/* No file shows it, but a start without a threshold of ours does. */
static bool save_last_thresh(struct saved *saved)
{
	const struct trace_instance *ti = &saved->ti;
	char last[32];

	if (set_recording(ti, false) || set_thresh(ti, "0") ||
	    set_tracer(ti, "hwlat"))
		return false;
	if (trace_read(last, sizeof(last), "%s/tracing_thresh", ti->root))
		return false;
	set_tracer(ti, "nop");
	memcpy(saved->last_thresh, last, sizeof(last));
	return true;
}

static const char *missing(struct saved *saved)
{
	char tracers[512];

	if (geteuid())
		return "needs root";
	if (get_nprocs() < 2)
		return "needs 2 CPUs";
	if (!trace_find(&saved->ti))
		return "no tracefs";
	if (trace_read(tracers, sizeof(tracers), "%s/available_tracers",
		       saved->ti.root) || !strstr(tracers, "hwlat"))
		return "no hwlat tracer (HWLAT_TRACER)";
	if (!save_settings(saved))
		return "no hwlat_detector/mode, width, window or tracing_thresh";
	return NULL;
}

/* hwlat_watch is where this program is. */
static void exec_watch(int in, int out)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 16);
	char *slash;

	if (len < 0)
		_exit(127);
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		_exit(127);
	snprintf(slash + 1, path + sizeof(path) - slash - 1, "hwlat_watch");
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	execl(path, path, NULL);
	_exit(127);
}

/* Returns how many CPUs have a watchpoint. */
static int start_watch(pid_t *pid, int *pipe_end)
{
	const char *wish = getenv("HWLAT_SEQNUM_WATCH");
	int in[2], out[2], watching = 0;
	FILE *f;

	if (wish && !strcmp(wish, "0"))
		return 0;
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return 0;
	*pid = fork();
	if (!*pid)
		exec_watch(in[0], out[1]);
	close(in[0]);
	close(out[1]);
	*pipe_end = in[1];
	f = fdopen(out[0], "r");
	if (f) {
		if (fscanf(f, "# watching %d", &watching) != 1)
			watching = 0;
		fclose(f);
	}
	return watching;
}

FIXTURE(hwlat)
{
	struct hwlat h;
};

FIXTURE_SETUP(hwlat)
{
	struct hwlat *h = &self->h;
	const char *seconds = getenv("HWLAT_SEQNUM_SECONDS");
	const struct trace_instance *ti;
	const char *reason;

	h->pipe = -1;
	h->seconds = seconds ? atoi(seconds) : DEFAULT_SECONDS;
	ASSERT_LT(0, h->seconds);
	ASSERT_TRUE(trace_guard_wait());
	h->saved = mmap(NULL, sizeof(*h->saved), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, h->saved);
	reason = missing(h->saved);
	if (reason) {
		snprintf(h->skip, sizeof(h->skip), "%s", reason);
		return;
	}

	ti = &h->saved->ti;
	trace_instance_name(&h->saved->ti, "hwlat_seqnum");
	ASSERT_EQ(0, trace_guard_start(&h->guard, undo, h->saved));
	alarm(h->seconds * PATIENCE + BOUND_SECONDS);
	ASSERT_EQ(0, mkdir(ti->dir, 0755));
	if (!save_last_thresh(h->saved)) {
		snprintf(h->skip, sizeof(h->skip), "hwlat: %s",
			 strerror(errno));
		return;
	}
	ASSERT_EQ(0, set_times(ti, WIDTH, WINDOW));
	ASSERT_EQ(0, set_mode(ti, "per-cpu"));
	h->watching = start_watch(&h->watch, &h->watch_pipe);
}

FIXTURE_TEARDOWN(hwlat)
{
	struct hwlat *h = &self->h;

	if (h->pipe >= 0)
		close(h->pipe);
	if (h->watch > 0) {
		close(h->watch_pipe);
		waitpid(h->watch, NULL, 0);
	}
	trace_guard_finish(&h->guard);
	free(h->tally.seen);
}

/* Notes one number. Returns false if it cannot be one. */
static bool note(struct tally *tally, unsigned long long number)
{
	unsigned long long size = tally->size ?: 4096;

	if (!number || number >= NUMBERS_LIMIT)
		return false;
	while (size <= number)
		size *= 2;
	if (size != tally->size) {
		tally->seen = realloc(tally->seen, size);
		if (!tally->seen)
			abort();
		memset(tally->seen + tally->size, 0, size - tally->size);
		tally->size = size;
	}
	tally->samples++;
	if (tally->seen[number])
		tally->duplicates++;
	if (tally->seen[number] < UCHAR_MAX)
		tally->seen[number]++;
	if (number < tally->lowest)
		tally->lowest = number;
	if (number > tally->highest)
		tally->highest = number;
	return true;
}

static void begin_tally(struct tally *tally)
{
	free(tally->seen);
	*tally = (struct tally){ .lowest = ULLONG_MAX };
}

/* "... : #12    inner/outer(us):   11/13    ts:..." */
static bool note_line(struct tally *tally, const char *line)
{
	const char *mark = strstr(line, ": #");
	char *end;
	unsigned long long number;

	if (!mark)
		return true;	/* not a sample */
	number = strtoull(mark + 3, &end, 10);
	return strstr(end, "inner/outer(us):") && note(tally, number);
}

/* Reads what has come. Returns false on nonsense. */
static bool drain(struct hwlat *h)
{
	char *partial = h->partial;
	char buf[8192];
	ssize_t len, i;

	while ((len = read(h->pipe, buf, sizeof(buf))) > 0) {
		for (i = 0; i < len; i++) {
			if (buf[i] != '\n') {
				if (h->partial_len < sizeof(h->partial) - 1)
					partial[h->partial_len++] = buf[i];
				continue;
			}
			partial[h->partial_len] = '\0';
			h->partial_len = 0;
			if (!note_line(&h->tally, partial))
				return false;
		}
	}
	return true;
}

/* Lets hwlat run for a while, and reads. The clock may jump, a look is a look. */
static bool look(struct hwlat *h)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000 };

	nanosleep(&pause, NULL);
	h->looks++;
	return drain(h);
}

/* Looks until there are @samples. Returns false on nonsense. */
static bool await_samples(struct hwlat *h, unsigned long long samples)
{
	int looks;

	for (looks = 0; looks < SAMPLE_LOOKS; looks++)
		if (h->tally.samples >= samples || !look(h))
			break;
	return looks == SAMPLE_LOOKS || h->tally.samples >= samples;
}

/* Events that the ring buffer says it has lost. */
static unsigned long long lost_events(const struct trace_instance *ti)
{
	unsigned long long value, lost = 0;
	char path[2 * TRACE_PATH], line[128];
	struct dirent *entry;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "%s/per_cpu", ti->dir);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/per_cpu/%.32s/stats", ti->dir,
			 entry->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "overrun: %llu", &value) == 1 ||
			    sscanf(line, "commit overrun: %llu", &value) == 1 ||
			    sscanf(line, "dropped events: %llu", &value) == 1)
				lost += value;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return lost;
}

/* No tracer can be changed while somebody has its trace_pipe open. */
static bool start_sampling(struct hwlat *h)
{
	const struct trace_instance *ti = &h->saved->ti;
	char path[TRACE_PATH];

	begin_tally(&h->tally);
	h->looks = 0;
	if (set_thresh(ti, LOWEST_THRESH) || set_recording(ti, true) ||
	    set_tracer(ti, "hwlat"))
		return false;
	snprintf(path, sizeof(path), "%s/trace_pipe", ti->dir);
	h->pipe = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return h->pipe >= 0;
}

static bool is_hidden(const struct tally *tally, unsigned long long number)
{
	int i;

	for (i = 0; i < tally->nr_intervals; i++)
		if (number >= tally->intervals[i].first &&
		    number <= tally->intervals[i].last)
			return true;
	return false;
}

/*
 * Stops without losing a sample that has its number but is not written yet:
 * with this threshold there are no new ones, and a new mode, even the same,
 * has hwlat wait for its threads.
 */
static bool stop_sampling(struct hwlat *h)
{
	const struct trace_instance *ti = &h->saved->ti;
	struct tally *tally = &h->tally;
	unsigned long long number, excused, gaps = 0;

	if (set_thresh(ti, HIGHEST_THRESH) || set_mode(ti, "per-cpu") ||
	    set_recording(ti, false) || !drain(h))
		return false;
	tally->lost = lost_events(ti);
	close(h->pipe);
	h->pipe = -1;
	if (set_tracer(ti, "nop"))
		return false;
	for (number = 1; number < tally->highest; number++) {
		if (tally->seen[number])
			continue;
		if (is_hidden(tally, number))
			tally->hidden++;
		else
			gaps++;
	}
	excused = tally->lost + tally->at_hand;
	tally->gaps = gaps > excused ? gaps - excused : 0;
	return true;
}

static void print_tally(struct hwlat *h)
{
	const struct tally *tally = &h->tally;

	printf("# cpus=%d\n", get_nprocs());
	printf("# watchpoints=%d\n", h->watching);
	printf("# samples=%llu\n", tally->samples);
	printf("# duplicates=%llu\n", tally->duplicates);
	printf("# gaps=%llu\n", tally->gaps);
	printf("# lost=%llu\n", tally->lost);
	printf("# hidden=%llu\n", tally->hidden);
	fflush(stdout);
}

/* What to do to hwlat again and again while it samples. */
typedef bool (*disturb_fn)(struct hwlat *h, int turn);

/* A slow machine takes longer to give a race the same chance. */
static bool is_enough(const struct hwlat *h, long long start)
{
	if (h->tally.samples < (unsigned int)get_nprocs() * ENOUGH_PER_CPU)
		return h->looks >= h->seconds * LOOKS_PER_SECOND * PATIENCE;
	return now_ms() - start >= h->seconds * 1000LL;
}

static void expect_unique(struct __test_metadata *_metadata,
			  struct hwlat *h, disturb_fn disturb)
{
	long long start;
	int turn = 0;

	ASSERT_TRUE(start_sampling(h)) {
		TH_LOG("start: %s", strerror(errno));
	}
	start = now_ms();
	do {
		if (disturb)
			ASSERT_TRUE(disturb(h, turn));
		turn++;
		ASSERT_TRUE(look(h));
	} while (turn < ENOUGH_TURNS || !is_enough(h, start));
	ASSERT_TRUE(stop_sampling(h)) {
		TH_LOG("stop: %s", strerror(errno));
	}
	print_tally(h);
	if (!h->tally.samples)
		SKIP(return, "no latency above " LOWEST_THRESH " us here");
	EXPECT_EQ(0ULL, h->tally.duplicates);
	EXPECT_EQ(0ULL, h->tally.gaps);
}

TEST_F_TIMEOUT(hwlat, unique_under_load, HARNESS_SECONDS)
{
	if (self->h.skip[0])
		SKIP(return, "%s", self->h.skip);
	expect_unique(_metadata, &self->h, NULL);
}

static bool write_times(struct hwlat *h, int turn)
{
	static const char * const times[][2] = {
		{ "1000", "3000" }, { "100", "1000" }, { "2000", "2500" },
		{ "500", "501" }, { "1", "2" }, { "1500", "5000" },
	};
	const char * const *pair = times[turn % ARRAY_SIZE(times)];

	return !set_times(&h->saved->ti, pair[0], pair[1]);
}

TEST_F_TIMEOUT(hwlat, unique_while_times_change, HARNESS_SECONDS)
{
	if (self->h.skip[0])
		SKIP(return, "%s", self->h.skip);
	expect_unique(_metadata, &self->h, write_times);
}

/*
 * hwlat goes on sampling on a CPU that is no longer in the mask, but the ring
 * buffer does not take that CPU's samples and does not count them as lost. So
 * numbers can be missing between the two changes, and before them one for each
 * CPU, which it had at hand, that is taken but not written, however long ago.
 *
 * Once there is one sample more than there are CPUs, one of them has written
 * two, and has taken the second number after the mask was back: no number that
 * was taken before is higher.
 */
static bool write_cpumask(struct hwlat *h, int turn)
{
	const struct trace_instance *ti = &h->saved->ti;
	struct tally *tally = &h->tally;
	struct hidden *hidden;
	char all[MAX_CPUS / 4 + MAX_CPUS / 32];
	unsigned long long wanted, cpus = get_nprocs_conf();
	bool ok;

	if (turn % 4 || tally->nr_intervals == MAX_HIDDEN)
		return true;
	hidden = &tally->intervals[tally->nr_intervals];
	if (trace_read(all, sizeof(all), "%s/tracing_cpumask", ti->dir) ||
	    !drain(h))
		return false;
	hidden->first = tally->highest + 1;
	tally->at_hand += cpus;
	ok = !trace_write("1", "%s/tracing_cpumask", ti->dir) && look(h);
	if (trace_write(all, "%s/tracing_cpumask", ti->dir) || !ok || !drain(h))
		return false;
	wanted = tally->samples + cpus + 1;
	if (!await_samples(h, wanted))
		return false;
	hidden->last = tally->samples < wanted ? NUMBERS_LIMIT : tally->highest;
	tally->nr_intervals++;
	return true;
}

TEST_F_TIMEOUT(hwlat, unique_while_cpumask_changes, HARNESS_SECONDS)
{
	if (self->h.skip[0])
		SKIP(return, "%s", self->h.skip);
	expect_unique(_metadata, &self->h, write_cpumask);
}

/* The sampling thread of a CPU, 0 if there is none. */
static pid_t find_thread(int cpu)
{
	char wanted[32], comm[32];
	struct dirent *entry;
	pid_t pid, found = 0;
	DIR *dir = opendir("/proc");

	snprintf(wanted, sizeof(wanted), "hwlatd/%d", cpu);
	while (dir && !found && (entry = readdir(dir))) {
		pid = atoi(entry->d_name);
		if (pid > 0 &&
		    !trace_read(comm, sizeof(comm), "/proc/%d/comm", pid) &&
		    !strcmp(comm, wanted))
			found = pid;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The @nth of the CPUs that can go offline, or the last; -1 without any. */
static int hotplug_cpu(const struct saved *saved, int nth)
{
	int cpu, found = -1;

	for (cpu = MAX_CPUS - 1; cpu > 0 && nth >= 0; cpu--) {
		if (saved->online[cpu]) {
			found = cpu;
			nth--;
		}
	}
	return found;
}

/*
 * hwlat takes a CPU in by work that holds its mutex while it waits for CPU
 * hotplug, and to let a CPU go it waits for a thread that may want that mutex.
 * The two must not meet, so wait until the thread, a new one, is there.
 */
static bool cycle_cpu(struct hwlat *h, int turn)
{
	int cpu = hotplug_cpu(h->saved, turn % MAX_HOTPLUG);
	pid_t before = find_thread(cpu);
	pid_t now;
	int looks;

	if (set_cpu_online(cpu, false) || !look(h) || set_cpu_online(cpu, true))
		return false;
	for (looks = 0; looks < START_LOOKS && look(h); looks++) {
		now = find_thread(cpu);
		if (now && now != before)
			return true;
	}
	return false;
}

TEST_F_TIMEOUT(hwlat, unique_over_hotplug, HARNESS_SECONDS)
{
	if (self->h.skip[0])
		SKIP(return, "%s", self->h.skip);
	if (hotplug_cpu(self->h.saved, 0) < 0)
		SKIP(return, "no CPU can be taken offline");
	expect_unique(_metadata, &self->h, cycle_cpu);
}

/* Doubles are for the others to find: here it is about where it starts. */
TEST_F_TIMEOUT(hwlat, restart_begins_at_one, HARNESS_SECONDS)
{
	int i;

	if (self->h.skip[0])
		SKIP(return, "%s", self->h.skip);
	for (i = 0; i < RESTARTS; i++) {
		ASSERT_TRUE(start_sampling(&self->h));
		ASSERT_TRUE(await_samples(&self->h, 1));
		ASSERT_TRUE(stop_sampling(&self->h));
		if (!self->h.tally.samples)
			SKIP(return, "no latency above " LOWEST_THRESH " us here");
		/* The first is what an overrun takes first. */
		EXPECT_TRUE(self->h.tally.lowest == 1 || self->h.tally.lost);
	}
	printf("# restarts=%d\n", RESTARTS);
	fflush(stdout);
}

TEST_HARNESS_MAIN
