package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/functions/host"
	"sluice/providers/local"
)

func TestTopicsOfHelp(t *testing.T) {
	t.Parallel()
	for topic, says := range map[string][]string{
		"concepts":    {"**Intent.**", "provisioning ──► ready", "resume-cloud"},
		"settings":    {"`{}` is a valid file", "Overrides"},
		"environment": {host.EnvConfig, host.EnvDatabase, host.EnvRedis, host.EnvName, host.EnvPlaces, local.EnvDir, local.EnvAgent},
		"exit-codes":  {"0      done", "128+n"},
	} {
		r := sluice(t, "help", topic)
		if r.code != exitDone || r.err != "" {
			t.Errorf("help %s ends with %d: %s", topic, r.code, r.err)
		}
		for _, want := range says {
			if !strings.Contains(r.out, want) {
				t.Errorf("help %s does not say %q", topic, want)
			}
		}
		if strings.Contains(r.out, "Usage:") || strings.Contains(r.out, "## Reference") {
			t.Errorf("help %s says more than it should:\n%s", topic, r.out)
		}
	}
	if r := sluice(t, "--help"); !strings.Contains(r.out, "sluice exit-codes") {
		t.Errorf("the help does not name its topics:\n%s", r.out)
	}
}

func TestCompletionIsAScriptOfEachShell(t *testing.T) {
	t.Parallel()
	for shell, says := range map[string]string{"bash": "complete -o default", "zsh": "#compdef sluice", "fish": "complete -c sluice"} {
		r := sluice(t, "completion", shell)
		if r.code != exitDone || !strings.Contains(r.out, says) {
			t.Errorf("completion %s ends with %d and does not say %q: %s", shell, r.code, says, r.err)
		}
	}
}

// Bash asks the program for what may follow.
func TestBashCompletesCommandsAndFlags(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "sluice.bash")
	if err := os.WriteFile(script, []byte(sluice(t, "completion", "bash").out), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"resume": "resume-cloud", "decisions --sin": "--since", "drain --rea": "--reason"} {
		words := append([]string{"sluice"}, strings.Fields(line)...)
		// What readline does on a tab, without bash-completion installed.
		ask := `. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
_init_completion() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; }
__start_sluice; printf '%s\n' "${COMPREPLY[@]}"`
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", ask, "bash", script}, words...)...)
		cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("after %q bash offers %q, %v, want %s", line, out, err, want)
		}
	}
}
