package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/markdown"
	"github.com/rlhost/rlhost/plugins/componentcheck"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// Who writes a column of a trajectory.
const (
	byEnvironment = "environment"
	byPlayer      = "what plays the policy"
	byRollout     = "rollout"
	byInference   = "inference"
)

// columnsAbout says who writes the columns of a kind, and what is in them.
var columnsAbout = map[string]struct{ by, about string }{
	"action":               {byPlayer, "what the agent does in step t"},
	"obs":                  {byEnvironment, "what the agent observes before step t; row T: after the last step"},
	"reward":               {byEnvironment, "of step t"},
	"terminated":           {byEnvironment, "1: step t ends the agent's episode"},
	"truncated":            {byEnvironment, "1: step t cuts the agent's episode off; 0 where `terminated` is 1"},
	"action_mask":          {byEnvironment, "1 for each choice that is legal in step t; with an action mask alone"},
	"final_obs":            {byEnvironment, "the newest last observation of each agent"},
	"active":               {byEnvironment, "1: the agent acts in step t; only where agents do not always act"},
	"info":                 {byEnvironment, "an info value of step t; only with such a tensor"},
	"reset_info":           {byEnvironment, "an info value of the episode that begins with row t, undefined in other rows; only with such a tensor"},
	"discount":             {byEnvironment, "0 to 1, of step t; only with such a tensor"},
	"reset_param":          {"what answers `reset_request`", "read where an episode begins; only with such a tensor"},
	"log_prob":             {byInference, "of all actions of the agent in step t under the policy that acted"},
	"value":                {byInference, "of the observation in row t"},
	"bootstrap_value":      {byInference, "of the last observation where `truncated` is 1; undefined elsewhere"},
	"valid":                {byRollout, "0: the row is not learned from; `valid/k+1` is of policy k alone where there are several"},
	"policy_version":       {byInference, "the version that wrote row t; `policy_version/k+1` is of policy k alone"},
	"plugin_version":       {byRollout, "the version of the environment that made the row"},
	"meta":                 {byRollout, "rlhost's own notes on the block: **not frozen**"},
	"shaped_reward":        {"what answers `reward_request`", "replaces `reward` in learning; only where it is asked for"},
	"raw_action":           {byInference, "the sample that a Box action was made from"},
	"age":                  {byRollout, "rows in which the agent acted since its episode began, at most 255; with frames or a core"},
	"past_obs":             {byRollout, "observations before row 0, the newest last; with frames of P rows"},
	"past_action":          {byRollout, "before row 0, as `past_obs`"},
	"past_reward":          {byRollout, "before row 0, as `past_obs`"},
	"core_state":           {byInference, "the state of a recurrent policy: **not frozen**"},
	"policy":               {byRollout, "the place of the policy that plays row t; only where there are several"},
	"past_shaped_reward":   {byRollout, "before row 0, as `past_obs`"},
	"executed_action":      {byRollout, "the action that the environment took, which a wrapper may have changed; with such wrappers alone"},
	"past_executed_action": {byRollout, "before row 0, as `past_obs`"},
	"played_version":       {byInference, "the policy version that plays the episode; only where versions are drawn"},
}

// columnTable is the table of the columns of trajectories.
func columnTable() (string, error) {
	var rows [][]string
	for _, k := range trajectory.ColumnKinds() {
		about, ok := columnsAbout[k.Name]
		if !ok {
			return "", fmt.Errorf("docs/generate says nothing about the column %s", k.Name)
		}
		rows = append(rows, []string{"`" + k.Name + "`", typeOf(&k), rowsOf(&k), axesOf(&k), about.by, wrappersOf(&k), about.about})
	}
	return markdown.Table([]string{"Column", "Type", "Rows", "Axes", "Written by", "Wrappers", "Contents"}, rows), nil
}

// datasetTable is the table of the same columns as a learner in Python has them.
func datasetTable() (string, error) {
	var rows [][]string
	for _, k := range trajectory.ColumnKinds() {
		about, ok := columnsAbout[k.Name]
		if !ok {
			return "", fmt.Errorf("docs/generate says nothing about the column %s", k.Name)
		}
		rows = append(rows, []string{"`" + k.Name + "`", arrayTypes.Replace(typeOf(&k)), shapeOf(&k), about.by, about.about})
	}
	return markdown.Table([]string{"Column", "dtype", "Shape", "Written by", "Contents"}, rows), nil
}

// arrayTypes has NumPy's names of types.
var arrayTypes = strings.NewReplacer("u64, as i64", "int64", "i32", "int32", "f32", "float32", "u8", "uint8")

// shapeOf is the shape of a column of a dataset. A column without environments has an element for each block.
func shapeOf(k *trajectory.ColumnKind) string {
	axes, shape := axesOf(k), rowsOf(k)
	if strings.HasPrefix(axes, "env") {
		shape += ", E"
	} else {
		shape += ", B"
	}
	if strings.HasSuffix(axes, "i") {
		shape += ", …"
	}
	return "[" + shape + "]"
}

func typeOf(k *trajectory.ColumnKind) string {
	switch {
	case k.Column == trajectory.PolicyVersion, k.Column == trajectory.PlayedVersion, k.Column == trajectory.PluginVersion:
		return "u64, as i64"
	case k.DType != 0:
		return k.DType.String()
	case k.Column == trajectory.RawAction:
		return "f32"
	case k.Role == hostabi.RoleAction:
		return "i32, f32"
	case k.Role == hostabi.RoleObservation:
		return "the environment's"
	case k.Role.Rule().DType != 0:
		return k.Role.Rule().DType.String()
	}
	return "f32" // of reset parameters
}

func rowsOf(k *trajectory.ColumnKind) string {
	switch {
	case k.Flags&trajectory.AtT != 0:
		return "T"
	case k.Flags&trajectory.AtT1 != 0:
		return "T+1"
	case k.Flags&trajectory.Past != 0:
		return "P"
	}
	return "1"
}

func axesOf(k *trajectory.ColumnKind) string {
	axes := ""
	if k.Flags&trajectory.PerEnv != 0 {
		axes = "env, agent"
	}
	if k.Role != 0 && !k.Role.Rule().Scalar || k.Column == trajectory.CoreState || k.Column == trajectory.MetaColumn {
		axes = strings.TrimPrefix(axes+", i", ", ")
	}
	return axes
}

// wrappersOf has R, A and O for wrappers of rewards, actions and observations that see the column.
func wrappersOf(k *trajectory.ColumnKind) (letters string) {
	for i, writes := range []trajectory.Column{trajectory.ShapedReward, trajectory.Action, trajectory.Obs} {
		if wrap.Sees(writes, k.Column, k.Flags) {
			letters += "RAO"[i : i+1]
		}
	}
	return letters
}

// payloadTable is the table of the schemas of the payloads that are part of the component ABI, or of the others.
func payloadTable(own bool) string {
	var rows [][]string
	for _, name := range component.Payloads() {
		if p := component.PayloadOf(name); p.Own == own {
			rows = append(rows, []string{"`" + p.Name + "`", fmt.Sprintf("`%016x`", p.Schema()), p.Fields})
		}
	}
	return markdown.Table([]string{"Payload", "Schema", "Fields"}, rows)
}

var marked = regexp.MustCompile(`(?s)(<!-- docs/generate: (\w+) -->\n).*?(<!-- end -->)`)

// tables are the tables of pages that are otherwise written by hand.
var tables = map[string]func(root string) (string, error){
	"columns":       func(string) (string, error) { return columnTable() },
	"dataset":       func(string) (string, error) { return datasetTable() },
	"payloads":      func(string) (string, error) { return payloadTable(false), nil },
	"own_payloads":  func(string) (string, error) { return payloadTable(true), nil },
	"sentences":     sentenceTable(componentSentences, "component", componentcheck.Codes(), true),
	"env_sentences": sentenceTable(envSentences, "", envcheck.Codes(), false),
}

// withTables returns a page by hand with the tables between its marks.
func withTables(page string) func(root string) (string, error) {
	return func(root string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return "", err
		}
		made := map[string]string{}
		for _, mark := range marked.FindAllStringSubmatch(string(text), -1) {
			table, ok := tables[mark[2]]
			if !ok {
				return "", fmt.Errorf("no table %q", mark[2])
			}
			if made[mark[2]], err = table(root); err != nil {
				return "", err
			}
		}
		return marked.ReplaceAllStringFunc(string(text), func(s string) string {
			mark := marked.FindStringSubmatch(s)
			return mark[1] + "\n" + made[mark[2]] + "\n" + mark[3]
		}), nil
	}
}
