// Command recording runs `sluice run` and writes what a newcomer sees of it: the terminal as an animated SVG, and the page in the middle of the burst.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The burst that is shown: some seconds longer than the start of all its machines.
const (
	jobs    = 100
	work    = 1 // seconds of each
	columns = 112
)

// line is a line of the terminal, and when it came.
type line struct {
	At   time.Duration
	Text string
}

func main() {
	program := flag.String("sluice", "bin/sluice", "the built program")
	out := flag.String("out", "docs", "folder that run.svg and page.png are written to")
	flag.Parse()
	if err := run(context.Background(), *program, *out); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program, out string) (err error) {
	home, err := os.MkdirTemp("", "sluice-recording-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	if err := os.Chmod(home, 0o755); err != nil { //nolint:gosec // the services' own user has to enter it
		return fmt.Errorf("open folder: %w", err)
	}
	s := &session{home: home, busy: make(chan string, 1)}
	picture := make(chan error, 1)
	go func() { picture <- photograph(ctx, s.busy, filepath.Join(out, "page.png")) }()
	err = s.record(ctx, program)
	close(s.busy)
	if err = errors.Join(err, <-picture); err != nil {
		return err
	}
	svg, err := animate(s.lines)
	if err == nil {
		err = os.WriteFile(filepath.Join(out, "run.svg"), svg, 0o644) //nolint:gosec // a document
	}
	return err
}

// session is a run that is being recorded.
type session struct {
	home  string
	lines []line
	page  string
	busy  chan string // gets the page's address when there is most to see
	told  bool
}

var (
	pageLine = regexp.MustCompile(`Watch it on (\S+)`)
	progress = regexp.MustCompile(`(\d+) of \d+ jobs over, .* booting, (\d+) working`)
)

// The page is worth a picture with so many machines at work and so many jobs over.
const (
	busyWith  = 3
	busyAfter = jobs / 2
)

// record runs the program to its end. It gets no services of anybody: only what everybody's run brings up.
func (s *session) record(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", "--jobs", strconv.Itoa(jobs), "--work", strconv.Itoa(work), "--home", s.home)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "DATABASE_URL=") || strings.HasPrefix(v, "REDIS_URL=")
	})
	cmd.Env = append(cmd.Env, "COLUMNS="+strconv.Itoa(columns))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends what it has started
	said, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w; `make build` builds it", program, err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		_ = write.Close() // never fails
	}()
	for scan := bufio.NewScanner(said); scan.Scan(); {
		s.hear(time.Since(begun), scan.Text())
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("record %s: %w; it said: %s", program, err, s.last())
	}
	return nil
}

func (s *session) hear(at time.Duration, text string) {
	text = strings.ReplaceAll(text, s.home, ".sluice")
	fmt.Println(text)
	s.lines = append(s.lines, line{at, text})
	if m := pageLine.FindStringSubmatch(text); m != nil {
		s.page = m[1]
	}
	if m := progress.FindStringSubmatch(text); m != nil && !s.told {
		over, _ := strconv.Atoi(m[1]) // digits
		working, _ := strconv.Atoi(m[2])
		if s.told = over >= busyAfter && working >= busyWith; s.told {
			s.busy <- s.page
		}
	}
}

func (s *session) last() string {
	if len(s.lines) == 0 {
		return "nothing"
	}
	return s.lines[len(s.lines)-1].Text
}
