// The frame/ folder contains everything around a screen: the navigation, the theme and the signed-in key.

export type Theme = 'system' | 'light' | 'dark';

export const themeStorageKey = 'intake-console-theme';
/** The event that is dispatched on the document when the colours have changed. */
export const themeChanged = 'intake-theme-changed';

export function keptTheme(): Theme {
  try {
    const kept = localStorage.getItem(themeStorageKey);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system'; // Storage may be blocked.
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event(themeChanged));
}

export function keepTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    if (theme === 'system') localStorage.removeItem(themeStorageKey);
    else localStorage.setItem(themeStorageKey, theme);
  } catch {
    // Without storage, the choice lasts only until the page is closed.
  }
}
