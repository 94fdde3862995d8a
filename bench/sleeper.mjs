/** A thread that sleeps until it is woken, and then works for a given time, like a writer. */
import { workerData } from "node:worker_threads";

const { bell, workMs } = workerData;
for (;;) {
  Atomics.wait(bell, 0, 0);
  const until = performance.now() + workMs;
  while (performance.now() < until);
}
