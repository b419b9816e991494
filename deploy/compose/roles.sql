-- Creates the logins that docs/operating/setup.md describes, for a trial.
create role intake_serve;
create role intake_admin;
create role intake_read_all;
create role intake_app login password 'for-trying-2' in role intake_serve;
create role intake_ops login password 'for-trying-3' in role intake_admin;
