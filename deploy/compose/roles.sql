-- The logins of docs/operating.md, for trying.
create role intake_serve;
create role intake_admin;
create role intake_read_all;
create role intake_app login password 'for-trying-2' in role intake_serve;
create role intake_ops login password 'for-trying-3' in role intake_admin;
