<?php
/**
 * The pages of orders and products in the admin.
 */

defined( 'ABSPATH' ) || exit;

/** includes/admin/wc-admin-functions.php: with orders as posts. */
function wc_get_page_screen_id( $for ) {
	return 'shop-order' === $for ? 'shop_order' : '';
}

/** includes/admin/wc-meta-box-functions.php: `id` is the field's name too, the value comes from the product. */
function woocommerce_wp_select( $field ) {
	global $post;
	$value = (string) ( $field['value'] ?? get_post_meta( $post->ID, $field['id'], true ) );
	echo '<label for="' . esc_attr( $field['id'] ) . '">' . wp_kses_post( $field['label'] ) . '</label><select id="' . esc_attr( $field['id'] ) . '" name="' . esc_attr( $field['name'] ?? $field['id'] ) . '">';
	foreach ( $field['options'] as $key => $label ) {
		echo '<option value="' . esc_attr( $key ) . '"' . selected( $key, $value, false ) . '>' . esc_html( $label ) . '</option>';
	}
	echo '</select>';
}

// includes/admin/class-wc-admin-meta-boxes.php, meta-boxes/views/html-product-data-general.php.
add_action(
	'add_meta_boxes',
	static function () {
		add_meta_box(
			'woocommerce-product-data',
			'Product data',
			static function () {
				wp_nonce_field( 'woocommerce_save_data', 'woocommerce_meta_nonce' );
				do_action( 'woocommerce_product_options_general_product_data' );
			},
			'product'
		);
	}
);

// includes/admin/meta-boxes/class-wc-meta-box-product-data.php: save().
add_action(
	'save_post_product',
	static function ( $id ) {
		if ( wp_verify_nonce( $_POST['woocommerce_meta_nonce'] ?? '', 'woocommerce_save_data' ) && current_user_can( 'edit_post', $id ) ) {
			$product = wc_get_product( $id );
			do_action( 'woocommerce_admin_process_product_object', $product );
			$product->save();
		}
	}
);

// includes/class-wc-ajax.php: mark_order_status(), the buttons of the list of orders.
add_action(
	'wp_ajax_woocommerce_mark_order_status',
	static function () {
		if ( current_user_can( 'edit_shop_orders' ) && check_admin_referer( 'woocommerce-mark-order-status' ) ) {
			wc_get_order( absint( $_GET['order_id'] ) )->update_status( sanitize_key( $_GET['status'] ), '', true );
		}
		wp_die( 'done' );
	}
);
