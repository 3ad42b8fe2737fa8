package graph

// For tests outside the package: they use the kinds of graphtest, which imports it.
const MaxProblems = maxProblems

var AddCorpus = addCorpus
