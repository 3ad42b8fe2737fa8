package runs

import (
	"encoding/json"
	"regexp"
	"strings"
)

// rename is a key, or a word of a key's value, that has another name now.
type rename struct {
	table string // header that the key's table begins with
	kind  string // of the component; empty if any
	from  *regexp.Regexp
	to    string
}

// key renames a key of a table that has a line of its own, or, after a dot, one of the inline table that a line has.
func key(table, kind, from, to string) rename {
	if outer, inner, ok := strings.Cut(from, "."); ok {
		return rename{table, kind, regexp.MustCompile(`(?m)^(` + outer + ` = \{(?:.*[{,])? )` + inner + ` = `), "${1}" + to + " = "}
	}
	return rename{table, kind, regexp.MustCompile(`(?m)^` + from + ` = `), to + " = "}
}

// word renames a value of a key in the inline table that a line has.
func word(table, outer, inner, from, to string) rename {
	return rename{table, "", regexp.MustCompile(`(?m)^(` + outer + ` = \{(?:.*[{,])? ` + inner + ` = )"` + from + `"`), `${1}"` + to + `"`}
}

// renames are the names that a stored pipeline may have from an earlier version.
var renames = []rename{
	key("run]", "", "stop.wall", "wall_time"),
	key("run]", "", "checkpoint.keep_every", "keep_every_env_steps"),
	key("run]", "", "evaluation.every", "every_env_steps"),
	key("run]", "", "evaluation.wall", "wall_time"),
	key("run]", "", "evaluation.deterministic", "greedy"),
	key("swap]", "", "canary", "trial_envs"),
	key("swap]", "", "verify", "trial_steps"),
	key("env.", "", "isolation", "runtime"),
	key("plugin.", "", "env", "pass_env"),
	key("plugin.", "", "restarts", "max_restarts"),
	word("policy.", "action", "log_std", "free", "parameter"),
	word("policy.", "action", "log_std", "state", "network"),
	key("component.", "learner", "entropy", "entropy_coef"),
	key("component.", "learner", "anneal_env_steps", "lr_anneal_env_steps"),
	key("component.", "learner", "clip_grad_apart", "separate_grad_norms"),
	key("component.", "learner", "recompute", "vtrace_recompute"),
	key("component.", "opponents", "every", "every_versions"),
	key("component.", "opponents", "draw_every", "draw_every_versions"),
}

// withNames gives keys their names of this version.
func withNames(text string) string {
	sections := strings.Split(text, "\n[")
	for i, s := range sections {
		for _, r := range renames {
			if strings.HasPrefix(s, r.table) && (r.kind == "" || strings.Contains(s, "\nkind = \""+r.kind+"\"\n")) {
				s = r.from.ReplaceAllString(s, r.to)
			}
		}
		sections[i] = s
	}
	return strings.Join(sections, "\n[")
}

// upgradeSeeds fills in what an earlier version stored about evaluations under another name.
func upgradeSeeds(stored []byte, seeds []SeedRun) {
	var former struct {
		Seeds []struct {
			Deterministic *bool `json:"deterministic"`
		} `json:"seeds"`
	}
	if json.Unmarshal(stored, &former) != nil || len(former.Seeds) != len(seeds) {
		return
	}
	for i, was := range former.Seeds {
		switch {
		case was.Deterministic == nil || seeds[i].Judged != "" || seeds[i].Return == nil:
		case *was.Deterministic:
			seeds[i].Judged = JudgedGreedy
		default:
			seeds[i].Judged = JudgedSampled
		}
	}
}
