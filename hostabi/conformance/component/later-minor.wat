;; A later minor version is no reason to refuse.
;; include guest
;; include slot
(data (i32.const 0x406) "\09")
