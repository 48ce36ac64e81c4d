/** Completion of names: entities from the server, relations from the loaded list. */

import * as api from "./api.js";
import { counted } from "./words.js";

/** Entities that begin with a text, then those that contain it; of the same name, by their id. */
export async function findEntities(text, signal) {
  const found = await api.entities(text, signal);
  const times = (name) => found.filter((one) => one.name === name).length;
  return found.map(({ name, id, facts }) => {
    const note = counted(facts, "fact");
    return times(name) > 1 ? { name: id, note: `${name}, ${note}` } : { name, note };
  });
}

/** The same for relations; without a text, all of them. */
export function findRelations(relations) {
  return async (text) => {
    const wanted = text.toLowerCase();
    const place = ({ name }) => name.toLowerCase().indexOf(wanted);
    return relations
      .filter((one) => place(one) >= 0)
      .sort((one, other) => (place(one) > 0) - (place(other) > 0) || other.facts - one.facts)
      .map(({ name, facts }) => ({ name, note: counted(facts, "fact") }));
  };
}
