package main

import (
	"fmt"
	"os"

	"github.com/rlhost/rlhost/pipeline/video"
)

type videoCommand struct {
	File   string  `arg:"" help:"File to write. Its ending names the format."`
	Width  int     `required:"" help:"Pixels in a row."`
	Height int     `required:"" help:"Rows."`
	FPS    float64 `name:"fps" default:"30" help:"Pictures a second."`
	FFmpeg string  `name:"ffmpeg" placeholder:"PATH" help:"The ffmpeg to encode with; default the one on PATH."`
	Check  bool    `help:"Tell only whether there is an encoder for the file."`
}

// Help describes the purpose of video.
func (c *videoCommand) Help() string {
	return `For programs: rlhost.record of Python calls it. Standard input has the pictures one after
another, three bytes a pixel.`
}

// codeUnencoded is the code of a video that cannot be written.
const codeUnencoded = "E093"

// Run writes the pictures of standard input.
func (c *videoCommand) Run(*program) error {
	if err := c.write(); err != nil {
		return fail(exitUsage, fmt.Errorf("error[%s]: %s: %w", codeUnencoded, c.File, err))
	}
	return nil
}

func (c *videoCommand) write() error {
	if c.Check {
		return video.Check(c.File, c.FFmpeg)
	}
	film, err := video.Create(c.File, video.Options{Width: c.Width, Height: c.Height, FPS: c.FPS, FFmpeg: c.FFmpeg})
	if err != nil {
		return err
	}
	defer film.Abort()
	if err := film.Copy(os.Stdin); err != nil {
		return err
	}
	return film.Close()
}
