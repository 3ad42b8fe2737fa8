;; With its grant it is there.
;; include granted
;; include guest
;; include slot
