package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"
)

// How the terminal is drawn, in pixels, and how much faster it is played than it was.
const (
	charWidth  = 8
	lineHeight = 18
	margin     = 16
	faster     = 4
)

//go:embed terminal.svg.tmpl
var terminalText string

// shown is a line where and when it appears.
type shown struct {
	Y    int
	At   string // CSS time
	Text string
}

// animate draws a session: each line appears at its time and stays. Where nothing is animated all lines are there.
func animate(session []line) ([]byte, error) {
	t, err := template.New("terminal").Parse(terminalText)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	all := append([]line{{0, fmt.Sprintf("$ sluice run --jobs %d --work %d", jobs, work)}}, session...)
	data := struct {
		Width, Height, Margin, Faster int
		Lines                         []shown
	}{columns*charWidth + 2*margin, len(all)*lineHeight + 2*margin, margin, faster, nil}
	for i, l := range all {
		if strings.TrimSpace(l.Text) == "" {
			continue
		}
		data.Lines = append(data.Lines, shown{
			Y: margin + (i+1)*lineHeight - lineHeight/4, At: seconds(l.At / faster), Text: cut(l.Text),
		})
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("draw terminal: %w", err)
	}
	return b.Bytes(), nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// cut shortens what no terminal of this width would show in one line: a word longer than a line.
func cut(text string) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}
