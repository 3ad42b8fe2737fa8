;; A name with an @, which separates it from the version.
;; include guest
(data (i32.const 0xc01) "conform@nce")
