;; A module without a marker is no component.
;; include imports
;; include memory
;; include alloc
;; include check
;; include configure
;; include manifest
;; include start
;; include slot
