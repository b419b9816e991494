/** This is plain JavaScript without imports, because every runtime loads it unchanged. */
export async function recordMany({ Intake }, { url, key, item_id, count }) {
  const intake = new Intake({ url, key, compress: true });
  const recorded = Array.from({ length: count }, (_, at) =>
    intake.record({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id,
      user_id: `mark ${at}`,
      event_timestamp: 1_700_000_000_000 + at,
    }),
  );
  await intake.flush();
  const ids = (await Promise.all(recorded)).map(({ interaction_id }) => interaction_id);
  await intake.close();
  return ids;
}
