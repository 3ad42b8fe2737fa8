;; A required function that is not exported.
;; include frame
;; include place
;; include observe
;; include advance
