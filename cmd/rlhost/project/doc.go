// Package project writes folders in which authors begin: an environment or a component with its build, its test, a pipeline that trains
// with it and files for editors. The parts of the SDK that it needs lie in it, so that it needs no clone of rlhost.
//
//	made, err := project.Write(ctx, project.Options{Kind: project.Env, Name: "maze", Language: "c", Schema: schema})
package project
