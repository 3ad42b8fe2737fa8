package opponents

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
)

// config is the table of a pool.
type config struct {
	Policy            string  `toml:"policy" doc:"Policy that acts with the pool's versions." range:"a [policy] table" default:"required"`
	Keep              int     `toml:"keep" doc:"Newest versions kept, besides the first." range:"1 to 1000" unit:"versions"`
	EveryVersions     uint64  `toml:"every_versions" doc:"Versions between two that are kept." range:"1 or more" unit:"versions"`
	DrawEveryVersions uint64  `toml:"draw_every_versions" doc:"Versions between two draws." range:"1 or more" unit:"versions"`
	Newest            float64 `toml:"newest" doc:"Probability that the newest kept version is drawn; else all are equally likely." range:"0 to 1"`
}

func defaults() config { return config{Keep: 10, EveryVersions: 20, DrawEveryVersions: 1} }

// maxKeep bounds the versions of a pool, which lie in memory and in each checkpoint.
const maxKeep = 1000

func (c *config) validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: fmt.Sprintf(format, args...)})
	}
	if c.Policy == "" {
		errs = append(errs, noPolicy())
	}
	if c.Keep < 1 || c.Keep > maxKeep {
		bad("keep", "is %d, want 1 to %d", c.Keep, maxKeep)
	}
	if c.EveryVersions < 1 {
		bad("every_versions", "is %d, want 1 or more", c.EveryVersions)
	}
	if c.DrawEveryVersions < 1 {
		bad("draw_every_versions", "is %d, want 1 or more", c.DrawEveryVersions)
	}
	if !(c.Newest >= 0 && c.Newest <= 1) {
		bad("newest", "is %g, want 0 to 1", c.Newest)
	}
	return errors.Join(errs...)
}

func noPolicy() error {
	return &component.ConfigError{Key: "policy", Reason: "is missing", Help: "name one of the [policy] tables"}
}
