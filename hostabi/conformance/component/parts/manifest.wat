;; include records
;; include describe
