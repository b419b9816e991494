-- The same as before, but without `insert … select`, which a cluster refuses in functions that it delegates to a worker. Rows
-- that stay are updated instead.
create or replace function erase_students_from_report(organisation uuid, students uuid[], rows_max integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
  set plan_cache_mode = 'force_custom_plan' set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  nobody constant uuid := '00000000-0000-0000-0000-000000000000';
  wanted constant uuid[] := array_remove(students, nobody);
  -- Each student takes several statements, which are slow in a cluster.
  students_max constant integer := 100;
  found_students uuid[];
  student uuid;
  first_visit public.report_visits;
  last_visit public.report_visits;
  first_touch public.report_interactions;
  last_touch public.report_interactions;
  rows_left bigint := rows_max;
  erased bigint;
begin
  -- Transactions come first: as long as one has its student, its credits are calculated from all the student's interactions.
  update public.report_transactions t set student_id = null
  where t.organisation_id = organisation and t.transaction_id = any (array(
    select s.transaction_id from public.report_transactions s
    where s.organisation_id = organisation and s.student_id = any (wanted) limit rows_left));
  get diagnostics erased = row_count;
  rows_left := rows_left - erased;
  if rows_left <= 0 then
    return true;
  end if;

  found_students := array(
    select w.id from unnest(wanted) as w(id) where exists (
      select from public.report_visits v
      where v.organisation_id = organisation and v.subject_id = w.id and not v.is_recommendation offset 0)
    limit students_max);
  foreach student in array found_students loop
    select v.* into first_visit from public.report_visits v
    where v.organisation_id = organisation and v.subject_id = student and not v.is_recommendation
    order by v.basis, v.day, v.item_type, v.platform, v.country limit 1;
    select v.* into last_visit from (
      select * from public.report_visits v
      where v.organisation_id = organisation and v.subject_id = student and not v.is_recommendation
        and (v.basis, v.day, v.item_type, v.platform, v.country)
          >= (first_visit.basis, first_visit.day, first_visit.item_type, first_visit.platform, first_visit.country)
      order by v.basis, v.day, v.item_type, v.platform, v.country limit rows_left) as v
    order by v.basis desc, v.day desc, v.item_type desc, v.platform desc, v.country desc limit 1;
    delete from public.report_visits v
    where v.organisation_id = organisation and v.subject_id = student and not v.is_recommendation
      and (v.basis, v.day, v.item_type, v.platform, v.country)
        >= (first_visit.basis, first_visit.day, first_visit.item_type, first_visit.platform, first_visit.country)
      and (v.basis, v.day, v.item_type, v.platform, v.country)
        <= (last_visit.basis, last_visit.day, last_visit.item_type, last_visit.platform, last_visit.country);
    get diagnostics erased = row_count;
    rows_left := rows_left - erased;
    if rows_left <= 0 then
      return true;
    end if;
  end loop;
  if cardinality(found_students) = students_max then
    return true;
  end if;

  found_students := array(
    select w.id from unnest(wanted) as w(id) where exists (
      select from public.report_interactions i where i.organisation_id = organisation and i.student_id = w.id offset 0)
    limit students_max);
  foreach student in array found_students loop
    select i.* into first_touch from public.report_interactions i
    where i.organisation_id = organisation and i.student_id = student
    order by i.item_id, i.basis, i.event_time, i.interaction_id limit 1;
    select i.* into last_touch from (
      select * from public.report_interactions i
      where i.organisation_id = organisation and i.student_id = student
        and (i.item_id, i.basis, i.event_time, i.interaction_id)
          >= (first_touch.item_id, first_touch.basis, first_touch.event_time, first_touch.interaction_id)
      order by i.item_id, i.basis, i.event_time, i.interaction_id limit rows_left) as i
    order by i.item_id desc, i.basis desc, i.event_time desc, i.interaction_id desc limit 1;
    -- The rows stay without their student, so that their interactions are not counted again. An interaction that has been
    -- counted again already has such a row.
    delete from public.report_interactions i
    where i.organisation_id = organisation and i.student_id = student
      and (i.item_id, i.basis, i.event_time, i.interaction_id)
        >= (first_touch.item_id, first_touch.basis, first_touch.event_time, first_touch.interaction_id)
      and (i.item_id, i.basis, i.event_time, i.interaction_id)
        <= (last_touch.item_id, last_touch.basis, last_touch.event_time, last_touch.interaction_id)
      and exists (
        select 1 from public.report_interactions n
        where n.organisation_id = organisation and n.student_id = nobody and n.item_id = i.item_id and n.basis = i.basis
          and n.event_time = i.event_time and n.interaction_id = i.interaction_id);
    get diagnostics erased = row_count;
    rows_left := rows_left - erased;
    update public.report_interactions i set student_id = nobody, country = null
    where i.organisation_id = organisation and i.student_id = student
      and (i.item_id, i.basis, i.event_time, i.interaction_id)
        >= (first_touch.item_id, first_touch.basis, first_touch.event_time, first_touch.interaction_id)
      and (i.item_id, i.basis, i.event_time, i.interaction_id)
        <= (last_touch.item_id, last_touch.basis, last_touch.event_time, last_touch.interaction_id);
    get diagnostics erased = row_count;
    rows_left := rows_left - erased;
    if rows_left <= 0 then
      return true;
    end if;
  end loop;
  return cardinality(found_students) = students_max;
end
$$;
