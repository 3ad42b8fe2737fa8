;; A module that is built for the candidate of version 1: refused, to be built again.
;; include imports
;; include memory
;; include alloc
;; include check
;; include configure
;; include manifest
;; include start
;; include slot
(func (export "rl_component_v1rc"))
