;; include act
;; include episode
