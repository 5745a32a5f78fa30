// SPDX-License-Identifier: GPL-2.0
/*
 * The first and only process of a guest that runs selftests.
 *
 * It mounts what the tests look at, brings every CPU online that the boot
 * loader's maxcpus= left out, runs the programs that the kernel command line
 * names, writes their results as KTAP to a serial port of its own, so that
 * neither kernel messages nor a cut line can be taken for a result, says that
 * it has come to the end, and powers the machine off.
 *
 * Command line, all of it optional:
 *   gate.run=ITEM[,ITEM...]  what to run, each ITEM is PROGRAM[:ARGUMENT...],
 *                            PROGRAM is relative to gate.dir
 *   gate.dir=PATH            where kselftest_install.sh has put the tests,
 *                            /kselftest if not given
 *   gate.cpus=N              how many CPUs must be online, all that are
 *                            present if not given
 *   gate.timeout=SECONDS     bound for each ITEM, 300 if not given; the slower
 *                            the CPUs came online, the more is added
 *   gate.results=DEVICE      where the results go, ttyS1 if not given
 *   gate.kernel=HASH         which build has to run, its version (uname -v) is
 *                            "#HASH ...": in another kernel nothing is run
 *   gate.shell               a shell on the console when all ITEMs have run
 *
 * NAME=VALUE without a dot in NAME comes from the kernel as an environment
 * variable, and is passed on to the tests.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define MAX_ITEMS	64
#define MAX_ARGS	32
#define MAX_READS	16	/* of an item's output in a row, a full pipe */
#define SLOWNESS	20	/* times what bringing CPUs online took */
#define KILL_MS		10000	/* for a killed item to be gone */
#define POWER_OFF_SECONDS	10
#define EXIT_SKIP	4	/* KSFT_SKIP */
#define BUSYBOX		"/bin/busybox"

static const struct {
	const char *type;
	const char *target;
} mounts[] = {
	{ "proc",	"/proc" },
	{ "sysfs",	"/sys" },
	{ "devtmpfs",	"/dev" },
	{ "debugfs",	"/sys/kernel/debug" },
	{ "tracefs",	"/sys/kernel/tracing" },
	{ "tmpfs",	"/tmp" },
	{ NULL,		NULL },
};

static struct {
	char *items[MAX_ITEMS];
	int nr_items;
	int cpus;		/* 0: all that are present */
	int timeout;		/* seconds for one item */
	bool shell;
	const char *kernel;
	const char *dir;
	const char *results;
} opt = {
	.timeout	= 300,
	.dir		= "/kselftest",
	.results	= "ttyS1",
};

static FILE *out;		/* the results' serial port */

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/*
 * A kernel in which something holds on to a lock may never come to switch the
 * machine off. A reset needs no lock, and with -no-reboot it ends QEMU as well.
 */
static void power_off(void)
{
	const struct timespec bound = { .tv_sec = POWER_OFF_SECONDS };
	int fd;

	if (!fork()) {
		sync();
		reboot(RB_POWER_OFF);
		_exit(1);
	}
	nanosleep(&bound, NULL);
	fd = open("/proc/sysrq-trigger", O_WRONLY);
	if (fd < 0 || write(fd, "b", 1) != 1)
		reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

/* A problem without which nothing can be reported on the results' port. */
static void die(const char *what)
{
	fprintf(stderr, "gate-init: %s: %s\n", what, strerror(errno));
	power_off();
}

static void mount_all(void)
{
	int i;

	for (i = 0; mounts[i].type; i++) {
		mkdir(mounts[i].target, 0755);
		if (mount(mounts[i].type, mounts[i].target, mounts[i].type, 0,
			  NULL) && errno != EBUSY)
			fprintf(stderr, "gate-init: mount %s: %s\n",
				mounts[i].target, strerror(errno));
	}
}

static void parse_option(char *word)
{
	char *value = strchr(word, '=');
	char *item;

	if (value)
		*value++ = '\0';
	if (!strcmp(word, "gate.shell")) {
		opt.shell = true;
	} else if (!strcmp(word, "gate.kernel")) {
		opt.kernel = value ?: "";	/* which is no kernel's */
	} else if (!value) {
		fprintf(stderr, "gate-init: %s needs a value\n", word);
	} else if (!strcmp(word, "gate.run")) {
		while ((item = strsep(&value, ",")))
			if (*item && opt.nr_items < MAX_ITEMS)
				opt.items[opt.nr_items++] = item;
	} else if (!strcmp(word, "gate.dir")) {
		opt.dir = value;
	} else if (!strcmp(word, "gate.cpus")) {
		opt.cpus = atoi(value);
	} else if (!strcmp(word, "gate.timeout")) {
		opt.timeout = atoi(value);
	} else if (!strcmp(word, "gate.results")) {
		opt.results = value;
	} else {
		fprintf(stderr, "gate-init: unknown option %s\n", word);
	}
}

static void parse_cmdline(void)
{
	static char line[4096];
	char *rest = line;
	char *word;
	FILE *f = fopen("/proc/cmdline", "r");

	if (!f || !fgets(line, sizeof(line), f))
		die("/proc/cmdline");
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	while ((word = strsep(&rest, " ")))
		if (!strncmp(word, "gate.", 5))
			parse_option(word);
}

static void open_results(void)
{
	struct termios tio;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/%s", opt.results);
	fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	if (!tcgetattr(fd, &tio)) {
		cfmakeraw(&tio);
		tcsetattr(fd, TCSANOW, &tio);
	}
	out = fdopen(fd, "w");
	if (!out)
		die(path);
	setvbuf(out, NULL, _IOLBF, 0);
}

static void end_results(void)
{
	fflush(out);
	tcdrain(fileno(out));
	power_off();
}

/* Whatever was tested in another kernel than the wanted one would prove nothing. */
static void check_kernel(void)
{
	size_t len = opt.kernel ? strlen(opt.kernel) : 0;
	struct utsname uts;

	uname(&uts);
	fprintf(out, "# kernel=%s\n", uts.version);
	if (!opt.kernel)
		return;
	if (uts.version[0] == '#' && len &&
	    !strncmp(uts.version + 1, opt.kernel, len) &&
	    (!uts.version[1 + len] || uts.version[1 + len] == ' '))
		return;
	fprintf(out, "Bail out! another kernel runs: %s\n", uts.version);
	end_results();
}

/* The last CPU of a list such as "0-3,8-11", plus one; 0 if there is none. */
static int cpu_list_end(const char *path)
{
	char line[256];
	FILE *f = fopen(path, "r");
	char *last;

	if (!f)
		return 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	last = strpbrk(line, "0123456789");
	while (last && strpbrk(last, ",-"))
		last = strpbrk(last, ",-") + 1;
	return last ? atoi(last) + 1 : 0;
}

/* Returns how many CPUs are online at the end. */
static int bring_cpus_online(int present)
{
	int cpu, fd, online = 0;
	char path[64];

	for (cpu = 0; cpu < present; cpu++) {
		char state = '1';

		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/online", cpu);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0) {
			if (read(fd, &state, 1) == 1 && state == '0' &&
			    pwrite(fd, "1", 1, 0) == 1)
				state = '1';
			close(fd);
		} else if (cpu) {	/* CPU 0 may have no such file */
			state = '0';
		}
		online += state != '0';
	}
	return online;
}

static bool cpus_online(int number)
{
	int present = cpu_list_end("/sys/devices/system/cpu/present");
	int wanted = opt.cpus ?: present;
	long long start = now_ms();
	int online = bring_cpus_online(present);
	long long took = now_ms() - start;
	bool ok = online > 0 && online == wanted;

	opt.timeout += SLOWNESS * took / 1000;
	fprintf(out, "# cpus=%d\n", online);
	fprintf(out, "# cpus_wanted=%d\n", wanted);
	fprintf(out, "# cpus_online_ms=%lld\n", took);
	fprintf(out, "%s %d guest/cpus-online\n", ok ? "ok" : "not ok", number);
	return ok;
}

/* Only ftracetest and people need a shell and its tools. */
static void install_busybox(void)
{
	pid_t pid;

	if (!access("/bin/sh", X_OK) || access(BUSYBOX, X_OK))
		return;
	pid = fork();
	if (!pid) {
		execl(BUSYBOX, BUSYBOX, "--install", "-s", "/bin", NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void exec_item(const char *dir, char **argv, int output,
		      const sigset_t *mask)
{
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	sigprocmask(SIG_SETMASK, mask, NULL);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	if (chdir(dir))
		dprintf(STDERR_FILENO, "# %s: %s\n", dir, strerror(errno));
	else
		execv(argv[0], argv);
	dprintf(STDERR_FILENO, "# %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/*
 * One level deeper than our own lines, as KTAP wants it for a subtest. Returns
 * after a while even if there is always more, since an item's time is limited.
 */
static void copy_output(int fd, bool *in_line)
{
	char buf[4096];
	ssize_t len, i;
	int reads;

	for (reads = 0; reads < MAX_READS; reads++) {
		len = read(fd, buf, sizeof(buf));
		for (i = 0; i < len; i++) {
			if (!*in_line)
				fputs("  ", out);
			putc(buf[i], out);
			*in_line = buf[i] != '\n';
		}
	}
}

/*
 * Follows an item until it ends or its time is over.
 *
 * Reaps whatever else has been left to us meanwhile. Returns the item's wait
 * status, with *timed_out set when it had to be killed.
 */
static int follow_item(pid_t item, int fd, int sigfd, bool *timed_out)
{
	long long deadline = now_ms() + opt.timeout * 1000LL;
	struct pollfd fds[2] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = sigfd, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	bool in_line = false;
	bool running = true;
	int status, result = 0;
	long long left;
	pid_t pid;

	*timed_out = false;
	while (running) {
		left = deadline - now_ms();
		if (left <= 0 && *timed_out)
			break;	/* not even SIGKILL can end it */
		if (left <= 0) {
			*timed_out = true;
			kill(-item, SIGKILL);
			left = KILL_MS;
			deadline = now_ms() + left;
		}
		poll(fds, 2, (int)left);
		copy_output(fd, &in_line);
		if (fds[0].revents & POLLHUP)
			fds[0].fd = -1;
		if (fds[1].revents & POLLIN &&
		    read(sigfd, &info, sizeof(info)) < 0)
			die("signalfd");
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (pid == item) {
				result = status;
				running = false;
			}
		}
	}
	kill(-item, SIGKILL);	/* whatever it may have left behind */
	copy_output(fd, &in_line);
	if (in_line)
		putc('\n', out);
	return result;
}

/* Writes an item's result line, returns whether it counts as passed. */
static bool report(int number, const char *name, int status, bool timed_out)
{
	bool ok = !timed_out && WIFEXITED(status) &&
		  (WEXITSTATUS(status) == 0 ||
		   WEXITSTATUS(status) == EXIT_SKIP);

	fprintf(out, "%s %d %s", ok ? "ok" : "not ok", number, name);
	if (timed_out)
		fprintf(out, " # timeout=%d", opt.timeout);
	else if (WIFSIGNALED(status))
		fprintf(out, " # signal=%d", WTERMSIG(status));
	else if (WEXITSTATUS(status) == EXIT_SKIP)
		fputs(" # SKIP", out);
	else if (WEXITSTATUS(status))
		fprintf(out, " # exit=%d", WEXITSTATUS(status));
	putc('\n', out);
	return ok;
}

static bool run_item(int number, char *item, int sigfd, const sigset_t *mask)
{
	char *argv[MAX_ARGS + 1] = { NULL };
	char *name, *slash, *dir = NULL;
	int fds[2], argc = 0, status;
	bool timed_out, ok;
	pid_t pid;

	name = strsep(&item, ":");
	while (item && argc < MAX_ARGS - 1)
		argv[++argc] = strsep(&item, ":");

	/* Tests expect to be started in their own directory. */
	slash = strrchr(name, '/');
	if (asprintf(&dir, "%s/%.*s", opt.dir,
		     slash ? (int)(slash - name) : 0, name) < 0 ||
	    asprintf(&argv[0], "./%s", slash ? slash + 1 : name) < 0)
		die("asprintf");

	fprintf(out, "# uptime_ms=%lld\n", now_ms());
	fprintf(out, "# Subtest: %s\n", name);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		die("pipe");
	fflush(out);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		/* A test that writes must be able to block. */
		fcntl(fds[1], F_SETFL, 0);
		exec_item(dir, argv, fds[1], mask);
	}
	setpgid(pid, pid);
	close(fds[1]);
	status = follow_item(pid, fds[0], sigfd, &timed_out);
	close(fds[0]);
	ok = report(number, name, status, timed_out);
	free(argv[0]);
	free(dir);
	return ok;
}

static int run_items(int number)
{
	sigset_t chld, old;
	int i, sigfd, failed = 0;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &old);
	sigfd = signalfd(-1, &chld, SFD_CLOEXEC);
	if (sigfd < 0)
		die("signalfd");
	for (i = 0; i < opt.nr_items; i++)
		failed += !run_item(number + i, opt.items[i], sigfd, &old);
	close(sigfd);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return failed;
}

static void run_shell(void)
{
	pid_t pid = fork();
	int fd;

	if (!pid) {
		setsid();
		fd = open("/dev/ttyS0", O_RDWR);
		if (fd < 0)
			fd = open("/dev/console", O_RDWR);
		ioctl(fd, TIOCSCTTY, 1);
		dup2(fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		if (chdir(opt.dir))
			fd = -1;	/* then it starts in / */
		execl(BUSYBOX, "sh", NULL);
		fprintf(stderr, "gate-init: no shell: %s\n", strerror(errno));
		_exit(127);
	}
	while (pid > 0 && waitpid(-1, NULL, 0) != pid)
		;
}

int main(void)
{
	int failed;

	mount_all();
	parse_cmdline();
	open_results();
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	setenv("HOME", "/tmp", 1);

	fputs("KTAP version 1\n", out);
	fprintf(out, "1..%d\n", opt.nr_items + 1);
	check_kernel();
	failed = !cpus_online(1);
	install_busybox();
	failed += run_items(2);
	if (opt.shell)
		run_shell();

	/* Without this line the results above are not all there is. */
	fprintf(out, "# gate-init: end items=%d failed=%d\n",
		opt.nr_items + 1, failed);
	end_results();
}
