package sdk

import (
	"errors"
	"strconv"
	"strings"
)

// Config has the arguments of an environment from the pipeline file. A value of the wrong type and an argument that
// nobody asked for are errors that Err reports, so a misspelt key is noticed.
type Config struct {
	values map[string]string
	asked  map[string]bool
	err    error
}

// ParseConfig reads lines "key=value".
func ParseConfig(text string) *Config {
	c := &Config{values: map[string]string{}, asked: map[string]bool{}}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if key != "" {
			c.values[key] = value
		}
	}
	return c
}

func (c *Config) lookup(key string) (string, bool) {
	c.asked[key] = true
	value, ok := c.values[key]
	return value, ok
}

// argument parses a value; a bad one is kept as the configuration's error.
func argument[T any](c *Config, key string, fallback T, want string, parse func(string) (T, error)) T {
	text, ok := c.lookup(key)
	if !ok {
		return fallback
	}
	value, err := parse(text)
	if err == nil {
		return value
	}
	if c.err == nil {
		c.err = errors.New("argument " + key + ": want " + want)
	}
	return fallback
}

// Int returns a whole number, or fallback if the pipeline does not give it.
func (c *Config) Int(key string, fallback int64) int64 {
	return argument(c, key, fallback, "a whole number", func(s string) (int64, error) {
		return strconv.ParseInt(s, 10, 64)
	})
}

// Float returns a number, or fallback.
func (c *Config) Float(key string, fallback float64) float64 {
	return argument(c, key, fallback, "a number", func(s string) (float64, error) {
		return strconv.ParseFloat(s, 64)
	})
}

// Bool returns true or false, or fallback.
func (c *Config) Bool(key string, fallback bool) bool {
	return argument(c, key, fallback, "true or false", func(s string) (bool, error) {
		if s != "true" && s != "false" {
			return false, strconv.ErrSyntax
		}
		return s == "true", nil
	})
}

// Text returns a string, or fallback.
func (c *Config) Text(key, fallback string) string {
	if value, ok := c.lookup(key); ok {
		return value
	}
	return fallback
}

// Err returns the first bad value, or else an argument that nothing has asked for.
func (c *Config) Err() error {
	if c.err != nil {
		return c.err
	}
	unknown := ""
	for key := range c.values {
		if !c.asked[key] && (unknown == "" || key < unknown) {
			unknown = key
		}
	}
	if unknown != "" {
		return errors.New("unknown argument " + unknown)
	}
	return nil
}
