;; A saved state goes on in another environment; one of another version is refused as such, and changes nothing.
;; include guest
;; include save
