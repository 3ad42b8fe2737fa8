package names

import (
	"strings"
	"testing"
)

func TestMeant_NamesTheKeyOrItsTable(t *testing.T) {
	learner := []string{"clip", "entropy_coef", "learning_rate", "minibatch"}
	for word, want := range map[string]string{
		"lr":              "did you mean `learning_rate`?",
		"ENT_COEF":        "did you mean `entropy_coef`?",
		"entropy":         "did you mean `entropy_coef`?",
		"num_minibatches": "did you mean `minibatch`? (it is in rows, not a number of minibatches)",
		"n_steps":         "did you mean `horizon` in [component.rollout]?",
		"canary":          "did you mean `trial_envs` in [swap]?",
		"every":           "",
		"env":             "",
		"learning":        "",
		"free":            "",
	} {
		if got := Meant(word, learner); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	for word, known := range map[string]string{"every": "every_env_steps", "env": "pass_env", "free": "parameter", "wall": "wall_time"} {
		if got, want := Meant(word, []string{"path", known}), "did you mean `"+known+"`?"; got != want {
			t.Errorf("%s beside %s: %q, want %q", word, known, got, want)
		}
	}
}

// The key that has a former name is not the former name of another key of its table, and no word stands for itself.
func TestAll_LeadsToOtherWords(t *testing.T) {
	all := All()
	if len(all) < 100 {
		t.Errorf("%d words", len(all))
	}
	for word, keys := range all {
		for _, k := range keys {
			if k.Name == word || k.Name == "" {
				t.Errorf("%s stands for %q", word, k.Name)
			}
			for _, other := range all[k.Name] {
				if other.Table == k.Table {
					t.Errorf("%s stands for %s in [%s], which is a former name of %s", word, k.Name, k.Table, other.Name)
				}
			}
		}
		if strings.ToLower(word) != word {
			t.Errorf("%s is never found: words are compared in small letters", word)
		}
	}
	if got := strings.Join(Words("epochs", "component.learner"), " "); got != "n_epochs num_epochs num_sgd_iter ppo_epochs update_epochs" {
		t.Errorf("epochs is called %s", got)
	}
}
