/** A time axis: positions of times, and its ticks. */

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
const DAY = 86_400_000; // ms

/** Conversions between years and times in months or days; other units need none. */
const CALENDARS = {
  month: {
    year: (time) => Math.floor(time / 12),
    time: (year) => year * 12,
    text: (time) => `${Math.floor(time / 12)}-${String((time % 12) + 1).padStart(2, "0")}`,
  },
  day: {
    year: (time) => new Date(time * DAY).getUTCFullYear(),
    time: (year) => new Date(0).setUTCFullYear(year, 0, 1) / DAY,
    text: (time) => new Date(time * DAY).toISOString().slice(0, 10),
  },
};
const PLAIN = { year: (time) => time, time: (year) => year, text: String };

/**
 * The axis from one time to another, both included.
 *
 * `place` gives the position of a time, 0 at the left and 1 at the right; `ticks` are the times to
 * write, with their texts: round years, or the two ends if there are fewer than two.
 */
export function axis(low, high, unit, wanted = 5) {
  const { year, time, text } = CALENDARS[unit] ?? PLAIN;
  const span = high + 1 - low;
  const years = year(high) - year(low);
  const step = STEPS.find((one) => years / one <= wanted) ?? STEPS.at(-1);
  const ticks = [];
  for (let at = Math.ceil(year(low) / step) * step; at <= year(high); at += step) {
    if (time(at) >= low) ticks.push({ at: time(at), text: String(at) });
  }
  const ends = [...new Set([low, high])].map((at) => ({ at, text: text(at) }));
  return { place: (at) => (at - low) / span, ticks: ticks.length > 1 ? ticks : ends };
}

/** A date such as 1990, 1990-05 or 1990-05-17 as a time; null if there is none, or it is open. */
export function timeOf(date, unit, isEnd = false) {
  const found = /^(-?\d+)(?:-(\d\d))?(?:-(\d\d))?$/.exec(date ?? "");
  if (!found) return null;
  const [year, month, day] = found.slice(1).map((part) => (part ? Number(part) : null));
  if (unit === "month") return year * 12 + (month ?? (isEnd ? 12 : 1)) - 1;
  if (unit !== "day") return year;
  const last = isEnd && day === null; // the day before the first of the next month or year
  const next = month === null ? [year + 1, 0] : [year, month];
  const at = last ? next : [year, (month ?? 1) - 1];
  return new Date(0).setUTCFullYear(...at, day ?? 1) / DAY - (last ? 1 : 0);
}

/** A share of the width as a percentage for SVG. */
export const across = (share) => `${(100 * share).toFixed(3)}%`;
