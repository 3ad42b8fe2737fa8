;; Without a wire that grants it the component does not start.
;; include guest
;; include slot
