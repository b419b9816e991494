import { expect, it } from 'vitest';
import { faultKinds } from './faults/kinds.ts';
import { drawPlan, halvesOf } from './plan.ts';

const options = { seconds: 60, faults: faultKinds };

it('a seed always draws the same plan, and another seed another one', () => {
  expect(drawPlan({ ...options, seed: 7 })).toEqual(drawPlan({ ...options, seed: 7 }));
  expect(drawPlan({ ...options, seed: 8 }).faults).not.toEqual(drawPlan({ ...options, seed: 7 }).faults);
});

it('every half is shorter, and what is left of it stays as it was', () => {
  const plan = drawPlan({ ...options, seed: 7 });
  const halves = halvesOf(plan);
  expect(halves.length).toBe(4);
  for (const { faults, clients } of halves) {
    expect(faults.length + clients.length).toBeLessThan(plan.faults.length + plan.clients.length);
    expect(plan.faults).toEqual(expect.arrayContaining([...faults]));
    expect(plan.clients).toEqual(expect.arrayContaining([...clients]));
  }
});

it('a plan with one fault and one client has no halves', () => {
  const plan = drawPlan({ ...options, seed: 7 });
  const [fault, client] = [plan.faults[0], plan.clients[0]];
  expect(halvesOf({ ...plan, faults: fault ? [fault] : [], clients: client ? [client] : [] })).toEqual([]);
});

it('no two kinds of faults have the same name', () => {
  const names = faultKinds.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
