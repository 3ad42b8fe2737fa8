;; What every guest has but its steps.
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset
