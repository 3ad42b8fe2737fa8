;; An import that is a capability needs its grant.
;; include granted
;; include guest
;; include slot
