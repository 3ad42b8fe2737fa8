;; A module of a later version of the ABI.
;; include imports
;; include memory
;; include alloc
;; include check
;; include configure
;; include manifest
;; include start
;; include slot
(func (export "rl_component_v9"))
