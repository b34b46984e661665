import type { Category } from '../../models/routing/roster.ts';

/** One text to several models at once, each by itself and without a thread; every model has a slot of its own in the reply. */
export interface WrapperShape {
  kind: 'wrapper';
  /** Which model suits where none is named. */
  category: Category;
  /** Where the text comes from: the field `text`, or the file that `file_path` names. */
  from: 'text' | 'file';
  /** Where the answers go: into the reply, or into files, one a model. */
  to: 'reply' | 'files';
  /** One more model reads the question with all answers and decides; this is what it is told. */
  decision?: string;
}
