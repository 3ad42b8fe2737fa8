// Command main is a guest that counts to a number in a file of data, and reads on in the file with each step.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

type counter struct {
	limit, age int
	file       *os.File // of which a byte is read in each step
}

func newCounter(*sdk.Config) (*counter, error) {
	text, err := os.ReadFile("/data/sizes/length.txt")
	if err != nil {
		return nil, err
	}
	names, err := os.ReadDir("/data/sizes")
	if err != nil || len(names) != 1 || names[0].Name() != "length.txt" || names[0].IsDir() {
		return nil, fmt.Errorf("the folder has %v: %v", names, err)
	}
	if err := os.WriteFile("/data/sizes/length.txt", nil, 0o600); err == nil {
		return nil, fmt.Errorf("a file of data was written")
	}
	for _, outside := range []string{"/data/../etc/passwd", "/etc/passwd", "/data/sizes/../../../etc/passwd"} {
		if _, err := os.ReadFile(outside); err == nil {
			return nil, fmt.Errorf("%s was read", outside)
		}
	}
	f, err := os.Open("/data/sizes/length.txt")
	if err != nil {
		return nil, err
	}
	if at, err := f.Seek(1, io.SeekEnd); err != nil || at != int64(len(text))+1 {
		return nil, fmt.Errorf("Seek = %d, %v", at, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	again, err := io.ReadAll(f)
	if err != nil || string(again) != string(text) {
		return nil, fmt.Errorf("read again: %q, %v", again, err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return &counter{limit: limit, file: f}, err
}

func (c *counter) Reset(rng *sdk.Rand, obs []float32) {
	c.age = int(rng.Below(3))
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		panic(err)
	}
	obs[0] = float32(c.age)
}

func (c *counter) Step(_ *sdk.Rand, _ []int32, obs []float32) sdk.Result {
	var next [1]byte
	n, _ := c.file.Read(next[:])
	c.age++
	obs[0] = float32(c.age) + float32(n)/4 + float32(next[0])/256
	return sdk.Result{Reward: 1, Terminated: c.age >= c.limit}
}

func init() {
	wasm.Serve(sdk.Spec{Name: "counter@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 100, 1), EpisodeLimit: 100}, newCounter)
}

func main() {}
