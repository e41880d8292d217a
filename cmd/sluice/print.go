package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminalWidth is how many columns there are; 0 where output goes to a file or a pipe, which wrap nothing.
func terminalWidth(out *os.File, columns string) int {
	if n, err := strconv.Atoi(columns); err == nil && n > 0 {
		return n
	}
	if n, _, err := term.GetSize(int(out.Fd())); err == nil {
		return n
	}
	return 0
}

// isTerminal says that a person looks on.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// say writes text for people, wrapped to the terminal.
func (a *app) say(format string, args ...any) error {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	return writeAll(a.out, wrap(text, a.width)+"\n")
}

// writeJSON writes one value for programs.
func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func writeAll(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// wrap breaks lines at spaces; what follows a break is indented two more than its line. A word that
// is longer than the line, such as an id, stays whole so that it can be copied.
func wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, wrapLine(line, width)...)
	}
	return strings.Join(out, "\n")
}

func wrapLine(line string, width int) []string {
	if utf8.RuneCountInString(line) <= width {
		return []string{line}
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var out []string
	current := ""
	for _, word := range strings.Fields(line) {
		switch {
		case current == "":
			current = indent + word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) <= width:
			current += " " + word
		default:
			out = append(out, current)
			current = indent + "  " + word
		}
	}
	return append(out, current)
}

// table writes rows in aligned columns, or, where the terminal is too narrow, one field per line.
func (a *app) table(head []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	widths := columnWidths(head, rows)
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if a.width > 0 && total > a.width {
		return a.records(head, rows)
	}
	lines := []string{alignedRow(head, widths)}
	for _, r := range rows {
		lines = append(lines, alignedRow(r, widths))
	}
	return writeAll(a.out, strings.Join(lines, "\n")+"\n")
}

func columnWidths(head []string, rows [][]string) []int {
	widths := make([]int, len(head))
	for _, r := range append([][]string{head}, rows...) {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func alignedRow(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
	}
	return strings.TrimRight(b.String(), " ")
}

func (a *app) records(head []string, rows [][]string) error {
	var lines []string
	for i, r := range rows {
		if i > 0 {
			lines = append(lines, "")
		}
		for j, cell := range r {
			if cell != "" {
				lines = append(lines, wrapLine(strings.ToLower(head[j])+": "+cell, a.width)...)
			}
		}
	}
	return writeAll(a.out, strings.Join(lines, "\n")+"\n")
}
