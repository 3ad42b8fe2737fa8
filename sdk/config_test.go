package sdk

import "testing"

func TestConfig_ReadsEveryType(t *testing.T) {
	c := ParseConfig("big=-9223372036854775808\nname=a=b\nrate=2.5e-3\nwet=true\n")
	if got := c.Int("big", 1); got != -1<<63 {
		t.Errorf("Int = %d", got)
	}
	if got := c.Text("name", ""); got != "a=b" {
		t.Errorf("Text = %q", got)
	}
	if got := c.Float("rate", 1); got != 0.0025 {
		t.Errorf("Float = %v", got)
	}
	if got := c.Bool("wet", false); !got {
		t.Errorf("Bool = %v", got)
	}
	if got := c.Int("absent", 7); got != 7 {
		t.Errorf("Int of an absent key = %d, want the fallback", got)
	}
	if err := c.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
}

func TestConfig_NamesTheKeyThatIsWrong(t *testing.T) {
	cases := []struct{ text, want string }{
		{"n=1.5\n", "argument n: want a whole number"},
		{"n=9223372036854775808\n", "argument n: want a whole number"},
		{"x=high\n", "argument x: want a number"},
		{"b=1\n", "argument b: want true or false"},
		{"n=1\nsteps=2\nextra=3\n", "unknown argument extra"},
	}
	for _, c := range cases {
		config := ParseConfig(c.text)
		config.Int("n", 0)
		config.Float("x", 0)
		config.Bool("b", false)
		if err := config.Err(); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add("limit=3\nname=a=b\n", "limit")
	f.Add("=\n\n=x\nkey", "key")
	f.Add("a.b=1e309\na.b=0x10\n", "a.b")
	f.Fuzz(func(t *testing.T, text, key string) {
		c := ParseConfig(text)
		c.Int(key, 1)
		c.Float(key, 1)
		c.Bool(key, true)
		if got := c.Text(key, "fallback"); len(got) > max(len(text), len("fallback")) {
			t.Errorf("Text(%q) of %q = %q", key, text, got)
		}
		_ = c.Err()
	})
}
