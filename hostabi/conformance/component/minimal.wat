;; A guest with nothing that is optional.
;; include guest
;; include slot
