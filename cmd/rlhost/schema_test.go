package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// compiledSchema is the schema that rlhost schema prints, in a library that judges documents by schemas.
func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	text, err := parts.Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("pipeline.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("pipeline.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// judge returns what a schema says against a pipeline.
func judge(t *testing.T, schema *jsonschema.Schema, pipeline string) error {
	t.Helper()
	var tree map[string]any
	if _, err := toml.Decode(pipeline, &tree); err != nil {
		t.Fatalf("%v in\n%s", err, pipeline)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(document)
}

// pipelinesOf returns all pipelines of the repository's examples and pages, by where they stand.
func pipelinesOf(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"pipeline.toml", "examples/pipelines/*.toml", "examples/*/*/*.toml", "bench/*/*.toml", "README.md", "docs/*/*.md", "examples/*/*/README.md"} {
		paths, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			path = strings.TrimPrefix(path, "../../")
			if strings.HasSuffix(path, ".md") {
				for _, b := range blocksOf(t, path) {
					if b.language == "toml" && isPipeline(b.text) {
						found[fmt.Sprintf("%s:%d", path, b.line)] = b.text
					}
				}
				continue
			}
			text, err := os.ReadFile("../../" + path)
			if err != nil {
				t.Fatal(err)
			}
			if isPipeline(string(text)) {
				found[path] = string(text)
			}
		}
	}
	return found
}

// isPipeline reports whether a TOML text is a whole pipeline.
func isPipeline(text string) bool {
	return strings.HasPrefix(text, "rlhost = 1") || strings.Contains(text, "\nrlhost = 1")
}

func TestSchema_TakesEveryPipelineOfTheRepository(t *testing.T) {
	t.Parallel()
	schema, pipelines := compiledSchema(t), pipelinesOf(t)
	if len(pipelines) < 50 {
		t.Errorf("only %d pipelines are found", len(pipelines))
	}
	for place, text := range pipelines {
		if err := judge(t, schema, text); err != nil {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// What the schema takes in full is the expanded form, too: every key of every table with its value.
func TestSchema_TakesExpandedPipelines(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	for preset := range parts.AboutPresets() {
		text := "rlhost = 1\n[run]\nname = \"page\"\n[env.it]\nuse = \"pendulum@1\"\n[train]\npreset = \"" + preset + "\"\nenv = \"it\"\n"
		g, problems := graph.Parse("page.toml", []byte(text), graph.ParseOptions{Parts: parts})
		if g == nil {
			t.Fatal(problems)
		}
		if err := judge(t, schema, g.Expanded()); err != nil {
			t.Errorf("%s: %v\n%s", preset, err, g.Expanded())
		}
	}
}

func TestSchema_RefusesWrongKeysAndValues(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	const right = "rlhost = 1\n[run]\nname = \"x\"\n[env.it]\nuse = \"cartpole@1\"\n[train]\npreset = \"fast\"\nenv = \"it\"\n"
	if err := judge(t, schema, right); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{
		strings.Replace(right, "rlhost = 1\n", "", 1),
		"speed = 1\n" + right,
		strings.Replace(right, "[run]", "[run]\nsed = 1", 1),
		strings.Replace(right, "[run]", "[run]\nseed = \"one\"", 1),
		strings.Replace(right, "[run]", "[run]\nseed = -1", 1),
		strings.Replace(right, "[run]", "[run]\nstop = { retrun = 9 }", 1),
		strings.Replace(right, "[run]", "[run]\nstop = { wall_time = 600 }", 1),
		strings.Replace(right, "[run]", "[run]\nstop = { wall_time = \"ten minutes\" }", 1),
		strings.Replace(right, "[run]", "[run]\nstop.policies.main = { steps = 9 }", 1),
		strings.Replace(right, "[train]", "[train]\nmode = \"serial\"", 1),
		strings.Replace(right, "[env.it]", "[env.it]\ngrants = [\"files\"]", 1),
		strings.Replace(right, "[env.it]", "[env.it]\nlimits = { memory = \"lots\" }", 1),
		right + "[component.learner]\nepoch = 3\n",
		right + "[component.learner]\nepochs = 0\n",
		right + "[component.learner]\nepochs = 2.5\n",
		right + "[component.second]\nkind = \"learner\"\nepoch = 3\n",
		right + "[policy.main]\nnet = { hidden = 64 }\n",
		right + "[policy.main]\nnet.nodes = [{ name = \"a\", dens = { out = 3 } }]\n",
		right + "[[wire]]\nsignal = \"a.b\"\nslots = \"c.d\"\n",
		right + "[[wire]]\nsignal = \"a.b\"\nslot = \"c.d\"\nmode = \"some\"\n",
		right + "[polcy.main]\nenv = \"it\"\n",
		right + "[component.rollout]\nplace = { hosts = \"b\" }\n",
	} {
		if judge(t, schema, wrong) == nil {
			t.Errorf("it takes\n%s", wrong)
		}
	}
	for _, right := range []string{
		right + "[component.mine]\nplugin = \"p\"\nepoch = 3\n",
		right + "[component.learner]\nruntime = \"wasm\"\nuse = \"./a.wasm\"\nepoch = 3\n",
		right + "[[wire]]\nsignal = [\"a.b\", \"c.b\"]\nslot = \"c.d\"\n",
	} {
		if err := judge(t, schema, right); err != nil {
			t.Errorf("%v in\n%s", err, right)
		}
	}
}
