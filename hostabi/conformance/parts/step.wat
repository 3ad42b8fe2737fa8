;; include place
;; include observe
;; include advance
;; include loop
